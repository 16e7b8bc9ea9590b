"""What was found once in a session: known to all its archives, taken out of earlier lines too.

Each archive keeps what was found in its own lines; together they are what is known of the session.
An archive is cleared when its transcript has settled, once for all that is known by then.
"""

import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import orjson

from hivepipe.archive.kept import Kept
from hivepipe.archive.reach import Reach
from hivepipe.redaction.redactor import Redactor


@dataclass(frozen=True, slots=True)
class Learning:
    """What one archive keeps; damaged, it begins anew."""

    known: tuple[str, ...] = ()  # the lines of `Redactor.known`
    cleared: int = 0  # checksum of all that its lines were cleared of; 0: of nothing
    edition: int = 0  # how often its lines were replaced

    @classmethod
    def of(cls, kept: Kept) -> "Learning":
        """Return what an archive keeps."""
        try:
            said = orjson.loads(kept.learned() or b"{}")
            return cls(tuple(map(str, said["known"])), int(said["cleared"]), int(said["edition"]))
        except (ValueError, KeyError, TypeError):
            return cls()

    def write(self, kept: Kept) -> None:
        """Keep it."""
        said = {"known": self.known, "cleared": self.cleared, "edition": self.edition}
        kept.write_learned(orjson.dumps(said))

    def with_known(self, known: Iterable[str]) -> "Learning":
        """Return one that knows these too, in the order in which they came."""
        return replace(self, known=tuple(dict.fromkeys((*self.known, *known))))


def checksum_of(known: Iterable[str]) -> int:
    """Return what tells one set of lines from another; never 0."""
    return zlib.crc32("\n".join(sorted(known)).encode()) or 1


def clear(kept: Kept, redactor: Redactor) -> int:
    """Take what a redactor knows out of an archive's lines; return how many changed.

    The archive is locked, and its lines are as they were written. A line without any of it keeps
    every byte, an archive without any is not written.
    """
    reach = kept.reach()
    changed = 0

    def counted() -> Iterator[bytes]:
        nonlocal changed
        for line, clean in _cleared(kept, reach, redactor):
            changed += line != clean
            yield clean

    with closing(_cleared(kept, reach, redactor)) as pairs:
        is_changed = any(line != clean for line, clean in pairs)
    if reach and is_changed:
        learning = Learning.of(kept)
        # First, so that whoever indexed the old lines sees that they are others now.
        replace(learning, edition=learning.edition + 1).write(kept)
        kept.replace_lines(counted(), reach)
        kept.remove_tally()
    return changed


def _cleared(
    kept: Kept, reach: Reach | None, redactor: Redactor
) -> Generator[tuple[bytes, bytes], None, None]:
    left = reach.length if reach else 0
    with kept.open_to_read() as lines:
        while left and (line := lines.readline()):
            left -= len(line)
            yield line, redactor.redact_line(line)[0]
