"""Lines of an archive that its transcript lost when the transcript was shrunk or replaced.

If the transcript has these lines again later, they are not archived twice. Each line is stored as a
hash of eight bytes, as often as the line occurs.
"""

import zlib
from _blake2 import blake2b
from collections import Counter
from collections.abc import Iterable

NAME_BYTES = 8


class RemovedLines:
    """A multiset of the hashes of removed lines."""

    def __init__(self, text: bytes = b"") -> None:
        """Parse hashes in the form that the method `text` returns."""
        self._names = Counter(text[at : at + NAME_BYTES] for at in range(0, len(text), NAME_BYTES))

    def copy(self) -> "RemovedLines":
        return RemovedLines(self.text())

    def add(self, lines: Iterable[bytes]) -> None:
        self._names.update(map(_name, lines))

    def take(self, line: bytes) -> bool:
        """Remove one occurrence of the line; return False if the line does not occur."""
        if not self._names:
            return False
        name = _name(line)
        left = self._names.pop(name, 0)
        if left > 1:
            self._names[name] = left - 1
        return left > 0

    def text(self) -> bytes:
        """Return the hashes of all lines, sorted, as bytes."""
        return b"".join(sorted(self._names.elements()))

    @property
    def checksum(self) -> int:
        """Return the CRC-32 of `text`, or 0 if `text` is empty."""
        return zlib.crc32(self.text()) if self._names else 0


def _name(line: bytes) -> bytes:
    return blake2b(line, digest_size=NAME_BYTES).digest()
