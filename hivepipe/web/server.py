"""The HTTP server of the page."""

import gc
import os
import signal
import socket
import sys
import threading

from starlette.types import ASGIApp

from hivepipe.web.memory import save_memory
from hivepipe.web.uvicorn_parts import Config, Server

_PARENT_SECS = 2.0
_NICENESS = 15  # hooks and workers have priority
_SWITCH_SECS = 0.0005  # short, so that views are not delayed by the checks of Health
_LAST_SECS = 1  # the streams of open pages are cut off after this time


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Serve until SIGTERM, SIGINT or, unless under `nohup`, the end of the parent process."""
    config = Config(
        app,
        lifespan="off",
        access_log=False,  # access lines would contain the token
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_LAST_SECS,
    )
    server = Server(config)
    os.nice(_NICENESS)
    save_memory()
    sys.setswitchinterval(_SWITCH_SECS)
    gc.freeze()  # full collections skip the objects of imported modules
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        threading.Thread(target=_end_with_parent, args=(server, os.getppid()), daemon=True).start()
    with listening:
        server.run(sockets=[listening])


def _end_with_parent(server: Server, parent: int) -> None:
    """Stop the server when its parent process has ended."""
    waits = threading.Event()
    while not waits.wait(_PARENT_SECS):
        if os.getppid() != parent:
            server.should_exit = True
            return
