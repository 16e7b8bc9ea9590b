"""Totals of archives, cached in memory and saved to a file from time to time.

The totals can always be computed from the lines of the archive. The totals are saved when the
archive has grown by several times the size of the saved totals. After a restart only the later
lines are counted again. So a turn writes few bytes, and a restart reads few lines again.
"""

import zlib
from collections import OrderedDict
from dataclasses import dataclass

import orjson

from hivepipe.archive.archive_files import TOTALS, ArchiveFiles
from hivepipe.archive.offsets import Offsets
from hivepipe.transcripts.totals import Totals

IN_MEMORY = 256
GROWTH_PER_SIZE = 16


@dataclass(slots=True)
class Counted:
    """The totals of an archive's first `length` bytes, saved up to the byte `saved_length`."""

    totals: Totals
    length: int = 0
    checksum: int = 0
    saved_length: int = 0
    size: int = 4096  # size of the saved totals in bytes at the last write or read

    def feed(self, lines: list[bytes]) -> None:
        for line in lines:
            self.totals.feed(line)
            self.length += len(line) + 1
            self.checksum = zlib.crc32(b"\n", zlib.crc32(line, self.checksum))


class TotalsCache:
    """The cached totals of this process, by the path of their archive."""

    def __init__(self) -> None:
        self._counted: OrderedDict[str, Counted] = OrderedDict()

    def take(self, kept: ArchiveFiles, offsets: Offsets) -> Counted:
        """Return the totals of an archive up to its last commit, and remove them from the cache.

        The totals are removed because a caller may fail while it adds lines to them. A caller that
        succeeds puts them back with `keep`.
        """
        counted = self._counted.pop(kept.name.path, None)
        if counted is None or (counted.length, counted.checksum) != (
            offsets.length,
            offsets.checksum,
        ):
            counted = _saved(kept)
            if not _catch_up(counted, kept, offsets):
                counted = Counted(Totals())
                _catch_up(counted, kept, offsets)
            counted.totals.take_usages()  # this usage was reported when its lines were added
            counted.totals.take_facts()
        return counted

    def recount(self, kept: ArchiveFiles, offsets: Offsets) -> Counted:
        """Return totals counted from the archive's start, so that all usage is reported again."""
        counted = Counted(Totals())
        _catch_up(counted, kept, offsets)
        return counted

    def keep(self, kept: ArchiveFiles, counted: Counted) -> None:
        """Put the totals into the cache; save them if the archive has grown enough."""
        self._counted[kept.name.path] = counted
        if len(self._counted) > IN_MEMORY:
            self._counted.popitem(last=False)
        if counted.length - counted.saved_length >= GROWTH_PER_SIZE * counted.size:
            head = {"bytes": counted.length, "crc32": f"{counted.checksum:08x}"}
            data = orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE) + counted.totals.dump()
            kept.write_hidden(TOTALS, data)
            counted.saved_length, counted.size = counted.length, len(data)

    def drop(self, kept: ArchiveFiles) -> None:
        self._counted.pop(kept.name.path, None)


def _saved(kept: ArchiveFiles) -> Counted:
    """Return an archive's saved totals, or empty ones if missing, damaged or of another version."""
    data = kept.hidden(TOTALS)
    first, _, dumped = data.partition(b"\n")
    try:
        head = orjson.loads(first)
        length, checksum = int(head["bytes"]), int(head["crc32"], 16)
        totals = Totals.load(dumped)
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError):  # damaged totals
        totals = None
    return Counted(totals, length, checksum, length, len(data)) if totals else Counted(Totals())


def _catch_up(counted: Counted, kept: ArchiveFiles, offsets: Offsets) -> bool:
    """Count the lines up to the last commit; return whether the totals then match its record."""
    if counted.length < offsets.length:
        for _, line in kept.lines_until(offsets.length, counted.length):
            counted.feed([line[:-1]])
    return (counted.length, counted.checksum) == (offsets.length, offsets.checksum)
