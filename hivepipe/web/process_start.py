"""The command `web` becomes the process of the page, so that none of its own modules stay.

These are a fifth of the memory of a page that nobody uses. Docstrings (-OO) take 2 MB more.
"""

import json
import os
import socket
import sys
from typing import NoReturn

MODULE = "hivepipe.web.process"


def become(listening: socket.socket, token: str, reader_token: str, *, is_local: bool) -> NoReturn:
    """Replace this process by one that serves the page on a listening socket.

    The tokens go through a pipe: others see the arguments of a process.
    """
    said = json.dumps({"token": token, "reader_token": reader_token, "is_local": is_local})
    reading, writing = os.pipe()
    os.write(writing, said.encode())
    os.close(writing)
    for descriptor in (reading, listening.fileno()):
        os.set_inheritable(descriptor, True)
    words = [sys.executable, "-I", "-OO", "-m", MODULE, f"{reading}", f"{listening.fileno()}"]
    os.execv(sys.executable, words)
