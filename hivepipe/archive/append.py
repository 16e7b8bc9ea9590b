"""Append the new lines of a transcript to its archive, redacted, one chunk at a time.

A chunk is synced to disk before it is yielded. The caller then writes the commit record
(`Offsets`). After a kill, either the old or the new commit record is there. Lines after the last
commit are cut off and written again.
"""

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, BinaryIO

from hivepipe.archive.archive_files import REMOVED_LINES, ArchiveFiles, summed
from hivepipe.archive.offsets import Offsets
from hivepipe.archive.reading import LineReader, tail_checksum
from hivepipe.archive.removed_lines import RemovedLines
from hivepipe.archive.sources import Source
from hivepipe.archive.totals import Counted, TotalsCache
from hivepipe.errors import EditedArchiveError, StoppedError
from hivepipe.transcripts.session_facts import SessionFacts
from hivepipe.transcripts.usage import Usage

PORTION_BYTES = 32 << 20
# An earlier redaction may have made a line longer, because a placeholder can exceed its secret.
_ROOM_BYTES = 1 << 20

# line -> (redacted line, names of the rules that matched)
Redact = Callable[[bytes], tuple[bytes, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of appended lines, with the commit records `before` and `after` the chunk."""

    before: Offsets
    after: Offsets
    removed_lines: bytes
    lines: int
    redactions: Counter[str]
    usages: list[Usage]
    facts: SessionFacts
    counted: Counted


def chunks(
    kept: ArchiveFiles,
    offsets: Offsets | None,
    source: Source,
    totals_cache: TotalsCache,
    redact: Redact,
    redact_alone: Redact,
    should_stop: Callable[[], bool],
    claim: Callable[[], None],
) -> Iterator[Chunk]:
    """Append a transcript's new lines to its archive; yield a `Chunk` at least every 32 MB.

    `offsets` is the last commit record, or None if it is unknown. `claim` is called before the
    first write. `redact` also finds known secrets of earlier lines; `redact_alone` uses only rules.

    Raises StoppedError if the process is to stop, and EditedArchiveError if another program changed
    the archive.
    """
    size = source.status.st_size
    removed_lines = RemovedLines()
    before = offsets if offsets and _continues(kept, offsets, source, size) else None
    if before:
        if size == before.source_bytes:
            return
        removed_lines = RemovedLines(kept.hidden(REMOVED_LINES) if before.removed_lines else b"")
        if removed_lines.checksum != before.removed_lines:
            before = None
    if offsets:
        redactions = (redact, redact_alone)
        _refuse_edited(kept, offsets, source, redactions, removed_lines if before else None)
    claim()
    with os.fdopen(kept.open_to_append(), "r+b") as archive:
        if before is None:
            before, removed_lines = _read_all(archive)
            counted = totals_cache.recount(kept, before)
        else:
            counted = totals_cache.take(kept, before)
        archive.truncate(before.length)
        archive.seek(before.length)
        growth = _Growth(source, redact, counted, removed_lines, offsets, before)
        yield from growth.chunks(archive, should_stop)


def _continues(kept: ArchiveFiles, offsets: Offsets, source: Source, size: int) -> bool:
    """Tell whether archive and transcript still begin with the content of the last commit.

    The check compares the archive's size, and the last bytes that were read from the transcript.
    """
    status = kept.lines_status()
    is_whole = status is not None and (kept.is_packed or status.st_size >= offsets.length)
    return (
        is_whole
        and size >= offsets.source_bytes
        and tail_checksum(source.descriptor, offsets.source_bytes) == offsets.source_tail
    )


def _refuse_edited(
    kept: ArchiveFiles,
    offsets: Offsets,
    source: Source,
    redactions: tuple[Redact, Redact],
    removed_lines: RemovedLines | None,
) -> None:
    """Raise EditedArchiveError if another program changed the archive's lines.

    Lines that a killed process left after the last commit do not count as a change. If
    `removed_lines` is None, all lines after the last commit are accepted.
    """
    if kept.lines_status() is None or kept.is_untouched(offsets):
        return
    with kept.open_to_read() as lines:
        if summed(lines, offsets.length) != (offsets.length, offsets.checksum):
            raise EditedArchiveError
        if removed_lines and not _is_torn_write(
            lines, offsets, source, redactions, removed_lines.copy()
        ):
            raise EditedArchiveError


def _is_torn_write(
    lines: BinaryIO,
    offsets: Offsets,
    source: Source,
    redactions: tuple[Redact, Redact],
    removed_lines: RemovedLines,
) -> bool:
    """Tell whether the lines after the last commit are a write that a kill interrupted.

    Each line is redacted again before it is compared, because the killed process may have known
    fewer secrets.
    """
    redact, redact_alone = redactions
    reader = LineReader(source.descriptor, offsets.source_bytes, offsets.source_checksum)
    for batch in reader.batches():
        for raw in batch:
            line = redact(raw)[0]
            if removed_lines.take(line):
                continue
            left = lines.readline(len(raw) + len(line) + _ROOM_BYTES)
            if left.endswith(b"\n"):
                if line not in (left[:-1], redact(left[:-1])[0]):
                    return False
            else:
                ends = (line, redact_alone(raw)[0])
                return any(end.startswith(left) for end in ends) and not lines.read(1)
    return not lines.read(1)


def _read_all(archive: IO[bytes]) -> tuple[Offsets, RemovedLines]:
    """Compute a commit record from all lines of an archive; return it and the lines' hashes."""
    removed_lines = RemovedLines()
    reader = LineReader(archive.fileno(), takes_open_end=False)
    for batch in reader.batches():
        removed_lines.add(batch)
    return Offsets(reader.offset, reader.checksum), removed_lines


@dataclass(slots=True)
class _Growth:
    """The state of extending one archive from one transcript."""

    source: Source
    redact: Redact
    counted: Counted
    removed_lines: RemovedLines
    committed: Offsets | None
    before: Offsets
    lines: int = 0
    redactions: Counter[str] = field(default_factory=Counter)

    def chunks(self, archive: IO[bytes], should_stop: Callable[[], bool]) -> Iterator[Chunk]:
        reader = LineReader(
            self.source.descriptor, self.before.source_bytes, self.before.source_checksum
        )
        if zlib.crc32(reader.tail) != self.before.source_tail:
            return  # the transcript was rewritten; the next call notices that
        for batch in reader.batches():
            self._append(archive, batch)
            must_stop = should_stop()
            if must_stop or reader.offset - self.before.source_bytes >= PORTION_BYTES:
                yield self._chunk(archive, reader)
            if must_stop:
                raise StoppedError
        if self._offsets(reader) != self.committed:
            yield self._chunk(archive, reader)

    def _append(self, archive: IO[bytes], batch: list[bytes]) -> None:
        redacted = [self.redact(line) for line in batch]
        added = [(line, found) for line, found in redacted if not self.removed_lines.take(line)]
        archive.writelines(line + b"\n" for line, _ in added)
        self.counted.feed([line for line, _ in added])
        self.lines += len(added)
        for _, found in added:
            self.redactions.update(found)

    def _chunk(self, archive: IO[bytes], reader: LineReader) -> Chunk:
        archive.flush()
        os.fsync(archive.fileno())
        chunk = Chunk(
            before=self.before,
            after=self._offsets(reader, os.fstat(archive.fileno()).st_mtime_ns),
            removed_lines=self.removed_lines.text(),
            lines=self.lines,
            redactions=self.redactions,
            usages=self.counted.totals.take_usages(),
            facts=self.counted.totals.take_facts(),
            counted=self.counted,
        )
        self.before = self.committed = chunk.after
        self.lines, self.redactions = 0, Counter()
        return chunk

    def _offsets(self, reader: LineReader, stamp: int = 0) -> Offsets:
        return Offsets(
            length=self.counted.length,
            checksum=self.counted.checksum,
            source_bytes=reader.offset,
            source_checksum=reader.checksum,
            source_tail=zlib.crc32(reader.tail),
            removed_lines=self.removed_lines.checksum,
            stamp=stamp,
        )
