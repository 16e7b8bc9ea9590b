"""The HTTP server of the page."""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading

from starlette.types import ASGIApp

from hivepipe.stack.installed import installed
from hivepipe.web.memory import save_memory
from hivepipe.web.uvicorn_parts import Config, Server

_WATCH_SECS = 2.0
_NICENESS = 15  # hooks and workers have priority
_SWITCH_SECS = 0.0005  # short, so that views are not delayed by the checks of Health
_LAST_SECS = 1  # the streams of open pages are cut off after this time
_CANCEL_SECS = 3  # uvicorn then cancels requests, and prints a traceback for each


class _Server(Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the connections after _LAST_SECS. A stream ends with its connection, a view not."""
        asyncio.get_running_loop().call_later(_LAST_SECS, self._disconnect)
        await super().shutdown(sockets)

    def _disconnect(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.close()


def serve(app: ASGIApp, listening: socket.socket, *, until_upgrade: bool = False) -> bool:
    """Serve until SIGTERM, SIGINT or, unless under `nohup`, the end of the parent process.

    With `until_upgrade`, also end when another version is installed, and return True: modules and
    templates that are loaded later would be of that version.
    """
    config = Config(
        app,
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
    version = installed() if until_upgrade else ""
    is_upgraded = threading.Event()
    watching = threading.Thread(
        target=_watch, args=(server, parent, version, is_upgraded), daemon=True
    )
    watching.start()
    with listening:
        server.run(sockets=[listening])
    return is_upgraded.is_set()


def _watch(server: Server, parent: int, version: str, is_upgraded: threading.Event) -> None:
    """Stop the server when its parent process has ended (0: none), or `version` was replaced.

    The version "" counts as never replaced.
    """
    while not is_upgraded.wait(_WATCH_SECS):
        if version and installed() not in (version, ""):
            is_upgraded.set()
        if is_upgraded.is_set() or (parent and os.getppid() != parent):
            server.should_exit = True
            return
