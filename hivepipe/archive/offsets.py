"""The checkpoint of an archive: how far archive and transcript were read and written.

It has some sixty bytes and is written in place after the lines are on disk: this is the commit.
Lines behind it were left by a killed process; they are cut off and written again.
"""

from dataclasses import astuple, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Offsets:
    """Sizes in bytes, and CRC-32 checksums of the content up to there."""

    length: int = 0
    checksum: int = 0
    source_bytes: int = 0
    source_checksum: int = 0
    source_tail: int = 0  # checksum of the last bytes, to recognise the same file
    removed_lines: int = 0  # checksum of the hashes of lines that the source no longer has; 0: none
    # Modification time of the lines in ns; 0: unknown. Another time: another program wrote there.
    stamp: int = field(default=0, compare=False)

    @classmethod
    def parse(cls, text: bytes) -> "Offsets | None":
        """Parse the output of `text`; None: it is damaged."""
        try:
            numbers = [int(word, 16) for word in text.split()]
            return cls(*numbers) if len(numbers) in (6, 7) else None
        except ValueError:
            return None

    def text(self) -> bytes:
        """Return one line of constant length, so that it can be overwritten in place."""
        return b"%012x %08x %012x %08x %08x %08x %016x\n" % astuple(self)

    @classmethod
    def of_meta(cls, meta: dict[str, Any] | None) -> "Offsets | None":
        """Return the checkpoint in metadata; None if they have none."""
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
        """Return the checkpoint as a part of the metadata."""
        return {
            "archive": {"bytes": self.length, "crc32": f"{self.checksum:08x}"},
            "source": {
                "path": source_path,
                "bytes": self.source_bytes,
                "crc32": f"{self.source_checksum:08x}",
                "tail": f"{self.source_tail:08x}",
                "surplus": f"{self.removed_lines:08x}",
            },
        }
