"""Totals of archives (tallies): a cache in memory, and a copy on disk saved now and then.

A tally depends on the lines of its archive only. It is saved when the archive has grown by several
times the size of the tally; after a restart the lines since then are counted again. This limits
both what is written per turn and what is read twice.
"""

import zlib
from collections import OrderedDict
from dataclasses import dataclass

import orjson

from hivepipe.archive.archive_files import COPY_BYTES, Kept
from hivepipe.archive.offsets import Offsets
from hivepipe.transcripts.totals import Totals

IN_MEMORY = 256
GROWTH_PER_SIZE = 16


@dataclass(slots=True)
class Counted:
    """The tally of the first `length` bytes; the saved tally covers `laid_aside` of them."""

    tally: Totals
    length: int = 0
    checksum: int = 0
    laid_aside: int = 0
    size: int = 4096  # size of the saved tally in bytes, when it was last written or read

    def feed(self, lines: list[bytes]) -> None:
        """Count lines that are in the archive now."""
        for line in lines:
            self.tally.feed(line)
            self.length += len(line) + 1
            self.checksum = zlib.crc32(b"\n", zlib.crc32(line, self.checksum))


class Tallies:
    """The cached tallies of this process, by the path of their archive."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._counted: OrderedDict[str, Counted] = OrderedDict()

    def take(self, kept: Kept, reach: Offsets) -> Counted:
        """Return the tally of an archive up to its checkpoint, and take it out of the cache.

        A caller that fails while it feeds the tally does not return it with `keep`.
        """
        counted = self._counted.pop(kept.name.path, None)
        if counted is None or (counted.length, counted.checksum) != (reach.length, reach.checksum):
            counted = _laid_aside(kept)
            if not _catch_up(counted, kept, reach):
                counted = Counted(Totals())
                _catch_up(counted, kept, reach)
            counted.tally.take_usages()  # of lines whose usage was reported when they were added
            counted.tally.take_said()
        return counted

    def anew(self, kept: Kept, reach: Offsets) -> Counted:
        """Count all lines of an archive of unknown reports, so that all usage is reported."""
        counted = Counted(Totals())
        _catch_up(counted, kept, reach)
        return counted

    def keep(self, kept: Kept, counted: Counted) -> None:
        """Put a tally into the cache, and save it if that is due."""
        self._counted[kept.name.path] = counted
        if len(self._counted) > IN_MEMORY:
            self._counted.popitem(last=False)
        if counted.length - counted.laid_aside >= GROWTH_PER_SIZE * counted.size:
            head = {"bytes": counted.length, "crc32": f"{counted.checksum:08x}"}
            data = orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE) + counted.tally.dump()
            kept.write_tally(data)
            counted.laid_aside, counted.size = counted.length, len(data)

    def drop(self, kept: Kept) -> None:
        """Drop the cached tally of an archive that is removed."""
        self._counted.pop(kept.name.path, None)


def _laid_aside(kept: Kept) -> Counted:
    """Return the saved tally; an empty one if there is none, or one of another version."""
    data = kept.tally()
    first, _, dumped = data.partition(b"\n")
    try:
        head = orjson.loads(first)
        length, checksum = int(head["bytes"]), int(head["crc32"], 16)
        tally = Totals.load(dumped)
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError):  # damaged
        tally = None
    return Counted(tally, length, checksum, length, len(data)) if tally else Counted(Totals())


def _catch_up(counted: Counted, kept: Kept, reach: Offsets) -> bool:
    """Count the lines up to the checkpoint; return False if the tally is of other lines."""
    if counted.length < reach.length:
        with kept.open_to_read() as lines:
            lines.seek(counted.length)
            rest = b""
            while counted.length + len(rest) < reach.length:
                wanted = min(COPY_BYTES, reach.length - counted.length - len(rest))
                chunk = lines.read(wanted)
                if not chunk:
                    break
                head, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    counted.feed(head.split(b"\n"))
    return (counted.length, counted.checksum) == (reach.length, reach.checksum)
