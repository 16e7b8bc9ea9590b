"""Does a process listen at a socket? For the processes that need not load redis-py."""

import os
import socket
import stat


def listens(path: str) -> bool:
    """Does somebody listen there? They are asked nothing: they may be busy."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            connection.connect(path)
    except BlockingIOError:  # more wait for it than it has room for
        return True
    except OSError:
        return False
    return True
