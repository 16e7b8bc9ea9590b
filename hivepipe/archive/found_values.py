"""Secrets found once in a session are redacted in all its archives, also in earlier lines.

Each archive stores the secrets found in its own lines. A session's known secrets are the secrets of
all its archives. When a transcript is not expected to grow soon, the session's known secrets are
redacted in its archive.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import orjson

from hivepipe.archive.archive_files import LEARNED, TOTALS, ArchiveFiles
from hivepipe.archive.offsets import Offsets

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor


@dataclass(frozen=True, slots=True)
class Learning:
    """The learned secrets of one archive; damaged data are treated as empty."""

    known: tuple[str, ...] = ()  # the lines of `Redactor.known`
    cleared: int = 0  # checksum of the secrets that were removed from the archive, or 0
    edition: int = 0  # how often the archive's lines were replaced

    @classmethod
    def of(cls, kept: ArchiveFiles) -> "Learning":
        try:
            return msgspec.convert(orjson.loads(kept.hidden(LEARNED) or b"{}"), cls)
        except ValueError:  # also msgspec's errors
            return cls()

    def write(self, kept: ArchiveFiles) -> None:
        kept.write_hidden(LEARNED, orjson.dumps(self))

    def with_known(self, known: Iterable[str]) -> "Learning":
        """Return a copy to which these secrets are added, in the order in which they were found."""
        return replace(self, known=tuple(dict.fromkeys((*self.known, *known))))


def checksum_of(known: Iterable[str]) -> int:
    """Return a checksum, never 0, of a set of secrets."""
    return zlib.crc32("\n".join(sorted(known)).encode()) or 1


def is_cleared_of(kept: ArchiveFiles, known: Sequence[str]) -> bool:
    """Tell whether all these secrets were already redacted in the archive's lines."""
    return not known or Learning.of(kept).cleared == checksum_of(known)


def clear(kept: ArchiveFiles, redactor: "Redactor") -> int:
    """Redact an archive's lines; return the number of changed lines.

    The caller holds the archive's lock and has checked the lines. A line without a secret keeps
    every byte. An archive without a secret is not rewritten.
    """
    offsets = kept.offsets()
    changed = sum(line != clean for line, clean in _cleared(kept, offsets, redactor))
    if offsets and changed:
        learning = Learning.of(kept)
        # Written first, so that a search index of the old lines sees that they changed.
        replace(learning, edition=learning.edition + 1).write(kept)
        kept.replace_lines((clean for _, clean in _cleared(kept, offsets, redactor)), offsets)
        kept.remove_hidden(TOTALS)
    return changed


def _cleared(
    kept: ArchiveFiles, offsets: Offsets | None, redactor: "Redactor"
) -> Iterator[tuple[bytes, bytes]]:
    for _, line in kept.lines_until(offsets.length if offsets else 0):
        yield line, redactor.redact_line(line)[0]
