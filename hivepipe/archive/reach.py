"""How far an archive and its transcript were read and written.

Five dozen bytes, written over in one step after the lines are on the disk: they are the commit.
What the archive has behind them was written by somebody who was killed; it is cut off and comes
again.
"""

from dataclasses import astuple, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reach:
    """Sizes in bytes, and the CRC-32s of all that they span."""

    length: int = 0
    checksum: int = 0
    source_bytes: int = 0
    source_checksum: int = 0
    source_tail: int = 0  # checksum of the last bytes: they tell whether it is the same file
    surplus: int = 0  # checksum of what names the lines that the source has not any more; 0: none
    # When the lines were written, in ns; 0: not known. Another time: somebody else wrote there.
    stamp: int = field(default=0, compare=False)

    @classmethod
    def parse(cls, text: bytes) -> "Reach | None":
        """Read what `text` wrote; None: it is damaged."""
        try:
            numbers = [int(word, 16) for word in text.split()]
            return cls(*numbers) if len(numbers) in (6, 7) else None
        except ValueError:
            return None

    def text(self) -> bytes:
        """Return it as one line, always of the same length: it is written over in place."""
        return b"%012x %08x %012x %08x %08x %08x %016x\n" % astuple(self)

    @classmethod
    def of_meta(cls, meta: dict[str, Any] | None) -> "Reach | None":
        """Return how far metadata reach; None: they do not say."""
        try:
            archive, source = meta["archive"], meta["source"]  # type: ignore[index]
            return cls(
                int(archive["bytes"]),
                int(archive["crc32"], 16),
                int(source["bytes"]),
                int(source["crc32"], 16),
                int(source["tail"], 16),
                int(source["surplus"], 16),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def as_meta(self, source_path: str) -> dict[str, Any]:
        """Return the part of the metadata that it is."""
        return {
            "archive": {"bytes": self.length, "crc32": f"{self.checksum:08x}"},
            "source": {
                "path": source_path,
                "bytes": self.source_bytes,
                "crc32": f"{self.source_checksum:08x}",
                "tail": f"{self.source_tail:08x}",
                "surplus": f"{self.surplus:08x}",
            },
        }
