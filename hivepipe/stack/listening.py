"""Tell whether a process listens at a socket, without loading redis-py."""

import os
import socket
import stat


def listens(path: str) -> bool:
    """Tell whether a process listens at the socket; nothing is sent, so it may be busy."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            connection.connect(path)
    except BlockingIOError:  # the backlog is full
        return True
    except OSError:
        return False
    return True
