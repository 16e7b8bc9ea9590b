"""A datagram socket in the runtime folder that hooks write to when they have spooled events.

A successful connect shows that a process will drain the spool. A remote Redis would not show this,
since it runs independently of the stack. One process per home binds the socket; it holds a lock.
"""

import contextlib
import os
import select
import socket

from hivepipe.queue.endpoint import BELL


class WakeUp:
    """The socket; bound for the life of the process."""

    def __init__(self, folder: str) -> None:
        """Bind the socket; one left by a killed process is replaced."""
        self._path = f"{folder}/{BELL}"
        self._remove()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._socket.setblocking(False)

    def wait(self, secs: float) -> None:
        """Wait for a datagram or the timeout; all waiting datagrams are consumed."""
        select.select([self._socket], [], [], secs)
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                pass

    def close(self) -> None:
        """Remove the socket, so that hooks see that no process listens."""
        self._socket.close()
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
