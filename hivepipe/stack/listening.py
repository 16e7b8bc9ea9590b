"""Connect to a unix socket and send one request, without loading redis-py."""

import os
import socket
import stat

ANSWER_SECS = 2


def listens(path: str) -> bool:
    """Tell whether a process, even a hung one, listens at the socket. Nothing is sent to it."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            connection.connect(path)
    except BlockingIOError:  # the backlog is full, so a process listens
        return True
    except OSError:
        return False
    return True


def ask(path: str, request: bytes, most: int) -> bytes:
    """Send a request; return up to `most` bytes of the answer, or b"" without an answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECS)
        try:
            connection.connect(path)
            connection.sendall(request)
            return connection.recv(most)
        except OSError:
            return b""
