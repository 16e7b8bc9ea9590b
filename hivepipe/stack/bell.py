"""What hooks ring when they have spooled: a datagram socket in the runtime folder.

That it can be connected to says that somebody is there; with a Redis that runs whether or not
the stack does, nothing else would. Bound by one process of a home, which holds a lock.
"""

import contextlib
import os
import select
import socket

from hivepipe.queues.endpoint import BELL


class Bell:
    """Bound for the life of the process."""

    def __init__(self, folder: str) -> None:
        """What a killed process left is replaced."""
        self._path = f"{folder}/{BELL}"
        self._remove()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._socket.setblocking(False)

    def wait(self, secs: float) -> None:
        """Return when it is rung, or after so long; however often it was rung is once."""
        select.select([self._socket], [], [], secs)
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                pass

    def close(self) -> None:
        """Let hooks know that nobody is there any more."""
        self._socket.close()
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
