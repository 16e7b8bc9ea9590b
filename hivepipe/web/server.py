"""The HTTP server of the page."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading

from starlette.responses import PlainTextResponse
from starlette.status import HTTP_500_INTERNAL_SERVER_ERROR
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hivepipe.files.memory import save_memory
from hivepipe.stack.installed import installed
from hivepipe.web.headers import hardened
from hivepipe.web.uvicorn_parts import Config, Server

_WATCH_SECS = 2.0
_NICENESS = 15  # hooks and workers have priority
_SWITCH_SECS = 0.0005  # short, so that views are not delayed by the checks of Health
_LAST_SECS = 1  # the streams of open pages are cut off after this time
_CANCEL_SECS = 3  # uvicorn then cancels other requests, and prints a traceback for each
_UPGRADING = """hivepipe is being upgraded: this page goes on when the new version is complete.
If it does not go on within a minute, the upgrade has failed: install hivepipe again.
"""


class WhileInstalled:
    """ASGI middleware that answers 503 as long as `version` is not installed ("": never).

    Modules and templates that a view still has to load would be missing or of another version.
    """

    def __init__(self, app: ASGIApp, version: str) -> None:
        self._app = app
        self._version = version

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_refused = scope["type"] == "http" and self._is_replaced()

        async def checked(message: Message) -> None:
            nonlocal is_refused
            if is_refused:
                return
            if message.get("status") == HTTP_500_INTERNAL_SERVER_ERROR and self._is_replaced():
                is_refused = True  # since the request
            else:
                await send(message)

        if not is_refused:
            try:
                await self._app(scope, receive, checked)
            except Exception:
                if not is_refused:
                    raise
        if is_refused:
            reload = {"Refresh": "3"} if scope["method"] == "GET" else {}
            answer = PlainTextResponse(_UPGRADING, 503, {"Retry-After": "3", **reload})
            await answer(scope, receive, hardened(scope, send))

    def _is_replaced(self) -> bool:
        return bool(self._version) and installed() != self._version


class _Server(Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams after _LAST_SECS by closing their connections."""
        asyncio.get_running_loop().call_later(_LAST_SECS, self._close_streams)
        await super().shutdown(sockets)

    def _close_streams(self) -> None:
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle and cycle.response_started:  # the response to a form may still come
                connection.transport.close()


def serve(app: ASGIApp, listening: socket.socket) -> bool:
    """Serve until SIGTERM, SIGINT or, unless under `nohup`, the end of the parent process.

    Also end when another version is installed, and return True: modules and templates that are
    loaded later would be of that version.
    """
    version = installed()
    config = Config(
        WhileInstalled(app, version),
        lifespan="off",
        access_log=False,  # access lines would contain the token
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_CANCEL_SECS,
    )
    server = _Server(config)
    os.nice(max(_NICENESS - os.nice(0), 0))  # unchanged if an upgrade started this process
    save_memory()
    sys.setswitchinterval(_SWITCH_SECS)
    gc.freeze()  # full collections skip the objects of imported modules
    parent = os.getppid() if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else 0
    is_upgraded = threading.Event()
    watched = (server, parent, version, is_upgraded)
    threading.Thread(target=_watch, args=watched, daemon=True).start()
    with listening:
        server.run(sockets=[listening])
    return is_upgraded.is_set()


def _watch(server: Server, parent: int, version: str, is_upgraded: threading.Event) -> None:
    """Stop the server when its parent process has ended (0: none), or `version` was replaced.

    The version "" counts as never replaced. A version that cannot start is ignored until it can.
    """
    while not is_upgraded.wait(_WATCH_SECS):
        if version and installed() not in (version, "") and _can_start():
            is_upgraded.set()
        if is_upgraded.is_set() or (parent and os.getppid() != parent):
            server.should_exit = True
            return


def _can_start() -> bool:
    """Tell whether the installed version can be imported: files or dependencies may be missing."""
    words = [sys.executable, "-I", "-OO", "-c", "import hivepipe.web.process"]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:  # Python's environment is being replaced, too
        return False
