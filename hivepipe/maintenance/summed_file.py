"""Read a file of a fixed size and compute its SHA-256 meanwhile."""

import hashlib
import io
from collections.abc import Callable
from typing import BinaryIO


class SummedFile(io.RawIOBase):
    """Reads and hashes a file's first bytes; if the file has shrunk, zeros fill the rest."""

    def __init__(self, file: BinaryIO, size: int, on_read: Callable[[int], None]) -> None:
        """`size` is the number of bytes; `on_read` is called with the size of each part."""
        self._file = file
        self._left = size
        self._on_read = on_read
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted).ljust(wanted, b"\0")
        self._left -= wanted
        self.digest.update(data)
        self._on_read(wanted)
        return data
