"""Lines that an archive has and its source has not any more: it was shrunk, replaced or rotated.

Should the source come to have them again, they are not archived twice. Each is named by eight
bytes; a line that stood there twice is named twice.
"""

import zlib
from _blake2 import blake2b
from collections import Counter
from collections.abc import Iterable

NAME_BYTES = 8


class Surplus:
    """The names of such lines."""

    def __init__(self, text: bytes = b"") -> None:
        """Take them as `text` gave them."""
        self._names = Counter(text[at : at + NAME_BYTES] for at in range(0, len(text), NAME_BYTES))

    def copy(self) -> "Surplus":
        """Return the same names again."""
        return Surplus(self.text())

    def add(self, lines: Iterable[bytes]) -> None:
        """Add lines."""
        self._names.update(map(_name, lines))

    def take(self, line: bytes) -> bool:
        """Is the line one of them? Then it is one less."""
        if not self._names:
            return False
        name = _name(line)
        left = self._names.pop(name, 0)
        if left > 1:
            self._names[name] = left - 1
        return left > 0

    def text(self) -> bytes:
        """Return all names, in an order that depends on nothing else."""
        return b"".join(sorted(self._names.elements()))

    @property
    def checksum(self) -> int:
        """Return the CRC-32 of the text; 0 if there is none."""
        return zlib.crc32(self.text()) if self._names else 0


def _name(line: bytes) -> bytes:
    return blake2b(line, digest_size=NAME_BYTES).digest()
