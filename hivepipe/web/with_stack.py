"""The page as a process of a stack: `web = true` in the user's own config.toml."""

import json
import logging
import secrets
import socket
import time

from hivepipe.errors import LockHeldError
from hivepipe.home import Place, write_small
from hivepipe.stack.lock import acquire_lock
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.shared_page import default_port, lock_path, record, record_path
from hivepipe.web.app import web_app
from hivepipe.web.listening import listen
from hivepipe.web.server import serve

BIND = "127.0.0.1"
AGAIN_SECS = 5.0

logger = logging.getLogger("hivepipe.web")


def run(place: Place) -> None:
    """Serve the page for all homes of the user, as soon as no other stack serves it."""
    acquire_lock(Stack.of(place).lock("web"), 0)
    _wait_for_lock()
    token = record().get("token") or secrets.token_urlsafe(24)
    listening = _listening(default_port())
    port = listening.getsockname()[1]
    content = {"token": token, "address": f"http://{BIND}:{port}/?token={token}"}
    write_small(record_path(), json.dumps(content))
    # After an upgrade, the supervisor starts the new version.
    serve(web_app(place, token, is_local=True), listening)


def _wait_for_lock() -> None:
    while True:
        try:
            acquire_lock(lock_path(), 0)
        except LockHeldError:  # two stacks started a process at the same moment
            time.sleep(AGAIN_SECS)
        else:
            return


def _listening(port: int) -> socket.socket:
    """Listen on a port as soon as it is free; with port 0, listen on any free port."""
    while True:
        try:
            return listen(BIND, port)
        except OSError as error:
            logger.warning("port %d of the page (`web_port`): %s", port, error.strerror)
            time.sleep(AGAIN_SECS)
