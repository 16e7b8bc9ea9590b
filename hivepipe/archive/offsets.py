"""The commit record of an archive: how far the transcript was read and the archive written.

The commit record has a hundred bytes. It is written in place after the lines are on disk, and this
write commits the lines. Lines after the last commit were left by a killed process. Such lines are
cut off and written again.

A second line has the checksum of the redaction rules, and the length and checksum of the archive's
lines that these rules redacted. The second line is ignored if its length or checksum differs from
the first line's, because releases before 2026-11-25 update only the first line.
"""

from dataclasses import dataclass, field, replace
from typing import Any

_RULES = b"rules"


@dataclass(frozen=True, slots=True)
class Offsets:
    """The sizes of archive and transcript in bytes, and CRC-32 checksums of their content."""

    length: int = 0
    checksum: int = 0
    source_bytes: int = 0
    source_checksum: int = 0
    source_tail: int = 0  # checksum of the last bytes, to recognise the same file
    removed_lines: int = 0  # checksum of the hashes of lines that the source no longer has, or 0
    # Modification time of the lines in ns, or 0 if unknown. If the file has another time, another
    # program wrote to it.
    stamp: int = field(default=0, compare=False)
    # Checksum of the rules that redacted all lines, or 0 if they are unknown or differ
    rules: int = field(default=0, compare=False)

    @classmethod
    def all_in(cls, data: bytes) -> "list[Offsets | None]":
        """Parse the output of several calls of `text`. Damaged output of a call becomes None."""
        lines = data.splitlines()
        rules = dict(filter(None, map(_rules_in, lines)))
        found = [cls._parse(line) for line in lines if not line.startswith(_RULES)]
        return [
            each and replace(each, rules=rules.get((each.length, each.checksum), 0))
            for each in found or [None]
        ]

    @classmethod
    def _parse(cls, text: bytes) -> "Offsets | None":
        try:
            numbers = [int(word, 16) for word in text.split()]
            return cls(*numbers) if len(numbers) in (6, 7) else None
        except ValueError:
            return None

    def text(self) -> bytes:
        """Return the commit record as lines of fixed length, which can overwrite older ones."""
        numbers = (self.length, self.checksum, self.source_bytes, self.source_checksum)
        more = (self.source_tail, self.removed_lines, self.stamp)
        line = b"%012x %08x %012x %08x %08x %08x %016x\n" % (*numbers, *more)
        of_rules = (_RULES, self.length, self.checksum, self.rules)
        return line + (b"%s %012x %08x %016x\n" % of_rules if self.rules else b"")

    @classmethod
    def of_meta(cls, meta: dict[str, Any] | None) -> "Offsets | None":
        """Return the commit record in metadata, or None if the metadata have none."""
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
        """Return the commit record as a part of the metadata."""
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


def _rules_in(line: bytes) -> tuple[tuple[int, int], int] | None:
    """Parse a second line: ((length, checksum) of lines, checksum of rules), or None if invalid."""
    name, *words = line.split() or [b""]
    if name != _RULES or len(words) != 3:
        return None
    try:
        length, checksum, rules = (int(word, 16) for word in words)
    except ValueError:
        return None
    return (length, checksum), rules
