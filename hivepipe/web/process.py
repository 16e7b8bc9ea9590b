"""The process of `hivepipe web`: `python -m hivepipe.web.process PIPE SOCKET` (descriptors)."""

import json
import os
import socket
import sys
import threading
from typing import Any

from hivepipe.config.config_file import load_and_use
from hivepipe.home import locate
from hivepipe.web.app import web_app
from hivepipe.web.process_start import exec_server
from hivepipe.web.server import serve


def main(reading: int, listening: int) -> None:
    """Serve the page until it is stopped; after an upgrade, continue with the new version.

    `reading` is the descriptor of a pipe with the arguments, and `listening` that of the socket.
    """
    with os.fdopen(reading, "rb") as pipe:
        arguments: dict[str, Any] = json.loads(pipe.read())
    arguments.setdefault("used", {})  # the application adds tickets, which stay used after exec
    load_and_use()
    served = socket.socket(fileno=listening)
    kept = served.dup()  # the server closes `served`
    try:
        if serve(web_app(locate("."), **arguments), served):
            _finish_requests()
            exec_server(kept, **arguments)
    except KeyboardInterrupt:
        pass


def _finish_requests() -> None:
    """Wait for the other threads, of which one may be stopping or starting a stack."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
