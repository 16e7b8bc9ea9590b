"""Read complete lines of a file that is still growing.

A line is complete when it ends with a newline, or when it is the last line and a whole JSON object.
A line above the size limit is not kept in memory. Such a line is replaced by its size and hash.

A file may be rewritten while it is read. So before each read, the last bytes before the offset are
read again and compared. The checksum of these bytes identifies the file for the next reader.
"""

import hashlib
import os
import zlib
from collections.abc import Iterator

from hivepipe.transcripts.lines import read_line

CHUNK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 64 << 20
TAIL_BYTES = 256


def tail_checksum(descriptor: int, offset: int) -> int:
    """Return the checksum of the last bytes before an offset, which identify the file."""
    return zlib.crc32(_tail(descriptor, offset))


def _tail(descriptor: int, offset: int) -> bytes:
    size = min(offset, TAIL_BYTES)
    return os.pread(descriptor, size, offset - size)


def _last_of(*parts: bytes) -> bytes:
    return b"".join(part[-TAIL_BYTES:] for part in parts)[-TAIL_BYTES:]


class LineReader:
    """A reader of a file's complete lines, from an offset on.

    `offset`, `checksum` and `tail`, the last bytes before the offset, are updated after each batch.
    """

    def __init__(
        self,
        descriptor: int,
        offset: int = 0,
        checksum: int = 0,
        *,
        chunk_bytes: int = 0,
        takes_open_end: bool = True,
    ) -> None:
        """Start at an offset; `checksum` is the CRC-32 of the bytes before it.

        With `takes_open_end`, a last line without a newline counts if it is a whole JSON object.
        """
        self.offset = offset
        self.checksum = checksum
        self.tail = _tail(descriptor, offset)
        self._descriptor = descriptor
        self._chunk_bytes = chunk_bytes or CHUNK_BYTES
        self._takes_open_end = takes_open_end

    def batches(self) -> Iterator[list[bytes]]:
        """Yield complete lines without their newlines, one batch for each chunk read."""
        self._pass_late_newline()
        position, checksum, tail, pending = self.offset, self.checksum, self.tail, _Pending()
        while chunk := self._read(position, self._chunk_bytes, tail):
            position += len(chunk)
            head, newline, rest = chunk.rpartition(b"\n")
            if newline:
                first, *others = head.split(b"\n")
                pending.add(first)
                checksum = zlib.crc32(b"\n", zlib.crc32(head, checksum))
                tail = _last_of(tail, head, newline)
                self.offset, self.checksum, self.tail = position - len(rest), checksum, tail
                yield [pending.line(), *others]
                pending = _Pending()
            pending.add(rest)
            checksum = zlib.crc32(rest, checksum)
            tail = _last_of(tail, rest)
        if self._takes_open_end and pending.is_whole_object():
            self.offset, self.checksum, self.tail = position, checksum, tail
            yield [pending.line()]

    def _read(self, position: int, size: int, tail: bytes) -> bytes:
        """Return bytes from `position`, or b"" if the bytes before it are no longer `tail`."""
        found = os.pread(self._descriptor, len(tail) + size, position - len(tail))
        return found[len(tail) :] if found.startswith(tail) else b""

    def _pass_late_newline(self) -> None:
        """Skip the newline of a last line that was read before the newline was written."""
        if self.tail[-1:] not in b"\n" and self._read(self.offset, 1, self.tail) == b"\n":
            self.offset, self.checksum = self.offset + 1, zlib.crc32(b"\n", self.checksum)
            self.tail = _last_of(self.tail, b"\n")


class _Pending:
    """A line that is not complete yet: its pieces, or size and hash if it exceeds the limit."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._hash = hashlib.sha256()

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > LONGEST_LINE_BYTES:
            for each in self._pieces:
                self._hash.update(each)
            self._pieces.clear()

    def line(self) -> bytes:
        if self._size <= LONGEST_LINE_BYTES:
            return b"".join(self._pieces)
        note = '{"type":"hivepipe-omitted","bytes":%d,"sha256":"%s"}'
        return (note % (self._size, self._hash.hexdigest())).encode()

    def is_whole_object(self) -> bool:
        if not 0 < self._size <= LONGEST_LINE_BYTES or self._pieces[-1][-1:] not in b"} \t\r":
            return False
        return read_line(self.line()) is not None
