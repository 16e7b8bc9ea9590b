"""Replace the command `web` by the server process, which does not load the command's modules.

The modules of the command would take a fifth of the memory of an idle server. The server runs with
-OO, because docstrings take 2 MB.
"""

import json
import os
import socket
import sys
from typing import NoReturn

MODULE = "hivepipe.web.process"


def exec_server(
    listening: socket.socket, token: str, reader_token: str, **more: object
) -> NoReturn:
    """Replace this process by a server of the page on a listening socket.

    The arguments of `web_app`, also `more`, go through a pipe, because other users can read those
    of a process.
    """
    arguments = json.dumps({"token": token, "reader_token": reader_token, **more})
    reading, writing = os.pipe()
    os.write(writing, arguments.encode())
    os.close(writing)
    for descriptor in (reading, listening.fileno()):
        os.set_inheritable(descriptor, True)
    words = [sys.executable, "-I", "-OO", "-X", "utf8", "-m", MODULE]
    os.execv(sys.executable, [*words, f"{reading}", f"{listening.fileno()}"])
