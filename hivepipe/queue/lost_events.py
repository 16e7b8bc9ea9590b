"""Lost events: no folder could store them. Hooks count them, `status` and `doctor` report them."""

import time
from pathlib import Path
from typing import NamedTuple

from hivepipe.files.regular_file import MOST_BYTES, regular
from hivepipe.queue.spool import LOST, all_folders

SHOWN_SECS = 7 * 86_400
_LONGEST = 25  # digits of a time, with room for later years
_HEADER = "# times of lost events, in nanoseconds since 1970\n"


class Lost(NamedTuple):
    """The number of lost events, and the times of the first and last one (seconds since 1970)."""

    number: int
    first: float
    last: float


def lost_events(home: str) -> Lost | None:
    """Return the events lost in the last week, or None if there were none."""
    since = time.time() - SHOWN_SECS
    times = sorted(at for path in lost_files(home) for at in _times(path) if at >= since)
    return Lost(len(times), times[0], times[-1]) if times else None


def lost_files(home: str) -> list[Path]:
    paths = [Path(folder, LOST) for folder in all_folders(home)]
    return [path for path in paths if path.is_file()]


def prepare(home: str) -> None:
    """Create the file of lost events with a disk block, so that a line fits on a full disk."""
    path = Path(home, LOST)
    if not path.exists():
        path.write_text(_HEADER, encoding="ascii")


def _times(path: Path) -> list[float]:
    with open(path, encoding="ascii", errors="replace", opener=regular) as file:
        lines = file.read(MOST_BYTES).splitlines()
    return [int(line) / 1e9 for line in lines if line.isdigit() and len(line) < _LONGEST]
