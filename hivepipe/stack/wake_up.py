"""A datagram socket in the runtime folder that hooks write to when they have spooled events.

A successful connect shows that a process will drain the spool. A remote Redis cannot show this,
because it runs independently of the stack. The one process that binds the socket holds a lock.
"""

import contextlib
import os
import select
import socket

from hivepipe.queue.endpoint import BELL


class WakeUp:
    """The datagram socket that hooks write to, bound as long as the process runs."""

    def __init__(self, folder: str) -> None:
        """Bind the socket, replacing a socket that a killed process has left."""
        self._path = f"{folder}/{BELL}"
        self._remove()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._socket.setblocking(False)

    def wait(self, secs: float) -> None:
        """Wait for a datagram or the timeout, and read all waiting datagrams."""
        select.select([self._socket], [], [], secs)
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                pass

    def close(self) -> None:
        """Remove the socket, so that hooks notice that no process drains the spool."""
        self._socket.close()
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
