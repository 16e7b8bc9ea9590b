"""Split the lines of an archive into segments of whole lines, about a megabyte each.

The boundaries depend only on the lines: splitting again gives the same segments.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from hivepipe.archive.archive_files import summed
from hivepipe.errors import TeamError
from hivepipe.team.archives.cipher import Cipher

SEGMENT_BYTES = 1 << 20
LARGEST_BYTES = 1 << 28  # most bytes of a segment's lines: one long line can exceed SEGMENT_BYTES
GZIP = 31  # zlib's window for gzip


class Point(NamedTuple):
    """The start of a segment: its number, its byte offset, the CRC-32 of all bytes before it."""

    number: int = 0
    offset: int = 0
    crc: int = 0


class Segment(NamedTuple):
    """A range of lines as it is stored; `crc` is the checksum of all lines up to `last`."""

    number: int
    first: int
    last: int
    crc: int
    content: bytes
    hash: str
    cipher: str

    @property
    def after(self) -> Point:
        """Return where the next segment begins."""
        return Point(self.number + 1, self.last, self.crc)


def place_of(home: int, archive: str) -> str:
    """Return the cipher's associated data for an archive; `home` is the home's server number."""
    return f"{home}:{archive}"


def checksum_from(lines: BinaryIO, start: Point, length: int) -> int:
    """Return the CRC-32 of all lines up to `length`; lines before `start` count as unchanged."""
    lines.seek(start.offset)
    return summed(lines, length - start.offset, start.crc)[1]


def segments(
    lines: BinaryIO, start: Point, length: int, cipher: Cipher | None, place: str
) -> Iterator[Segment]:
    """Yield the segments from `start` to `length`; `place` comes from `place_of`."""
    lines.seek(start.offset)
    number, first, crc = start
    while first < length and (plain := _next(lines, length - first)):
        crc = zlib.crc32(plain, crc)
        content = gzip.compress(plain, mtime=0)
        if cipher:
            content = cipher.encrypt(content, f"{place}:{first}")
        last = first + len(plain)
        digest = hashlib.sha256(content).hexdigest()
        yield Segment(number, first, last, crc, content, digest, cipher.name if cipher else "")
        number, first = number + 1, last


def _next(lines: BinaryIO, left: int) -> bytes:
    plain = lines.read(min(SEGMENT_BYTES, left))
    left -= len(plain)
    return plain if not left or plain.endswith(b"\n") else plain + lines.readline(left)


def opened(content: bytes, cipher: Cipher | None, place: str, first: int, last: int) -> bytes:
    """Return a segment's lines. Raise TeamError if damaged, or not `last - first` bytes long."""
    packed = cipher.decrypt(content, f"{place}:{first}") if cipher else content
    unpacking = zlib.decompressobj(GZIP)
    length = min(last - first, LARGEST_BYTES)
    try:
        lines = unpacking.decompress(packed, length + 1)
    except zlib.error:
        lines = b""
    if len(lines) != length or not unpacking.eof or unpacking.unused_data:
        raise TeamError(f"the segment at byte {first} is damaged")
    return lines
