"""prune_files: archives, logs, waiting events and archived hive workers that are over their time.

Events that are dropped are counted before they go: `hivepipe status` shows them among the jobs
without effect. A kill in between may count one twice, but none goes in silence.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hivepipe.audit_log import NAME as AUDIT_LOG
from hivepipe.audit_log import rotate
from hivepipe.envelope import Envelope
from hivepipe.errors import BadEnvelopeError
from hivepipe.handlers.archive import archives_of
from hivepipe.handlers.search import index_path
from hivepipe.handlers.workplace import Workplace
from hivepipe.hive.folder import hives
from hivepipe.hive.keeping import drop_archived
from hivepipe.home import kept_folder, logs_folder
from hivepipe.jobs import Job
from hivepipe.queues.spooled import spool_files
from hivepipe.retention_limits import limits_of
from hivepipe.search.index import remove_index
from hivepipe.store.applied import count
from hivepipe.store.database import Database
from hivepipe.stored_times import stored_time

DAY_SECS = 86_400.0

logger = logging.getLogger("hivepipe.prune")


class Dropped(NamedTuple):
    """How many of each went."""

    archives: int
    logs: int
    events: int
    workers: int


def prune_files(workplace: Workplace, job: Envelope) -> None:
    """Delete what is over its time at the time of the event."""
    dropped = drop_outdated(workplace, job)
    if any(dropped):
        logger.info("deleted %d archives, %d logs, %d events, %d archived workers", *dropped)


def drop_outdated(workplace: Workplace, job: Envelope) -> Dropped:
    """Delete it and return how many of each went; RetentionError: no limits can be read."""
    home, now = workplace.home, job.event_time_ns / 1e9
    limits = limits_of(home)
    rotate(kept_folder(home))
    return Dropped(
        _drop_archives(workplace, now - limits.archives * DAY_SECS),
        _drop_logs(home, now - limits.logs * DAY_SECS),
        _drop_events(workplace, job, now - limits.spool * DAY_SECS, limits.spool_mb * 1e6),
        _drop_workers(home, now - limits.workers * DAY_SECS),
    )


def count_dropped(db: Database, job: Envelope) -> None:
    """Count what `drop_outdated` is about to drop."""
    what, number = job.text("what"), job.number("number")
    if not what or number is None or number < 0:
        raise BadEnvelopeError("nothing to count")
    count(db, f"dropped:{what}", number)


def _drop_archives(workplace: Workplace, before: float) -> int:
    archives = archives_of(workplace.home)
    dropped = 0
    for key in sorted(archives.index.entries()):
        workplace.check_stop()
        dropped += archives.remove_if_older(key, before)
    if dropped:
        remove_index(index_path(workplace.home))
    return dropped


def _drop_logs(home: str, before: float) -> int:
    folders = (f"{home}/logs", logs_folder(home), kept_folder(home))
    rotated = {path for folder in folders for path in Path(folder).glob("*.log.*")}
    old = [
        path
        for path in rotated
        if path.is_file() and not path.name.startswith(AUDIT_LOG) and path.lstat().st_mtime < before
    ]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _drop_events(workplace: Workplace, job: Envelope, before: float, most_bytes: float) -> int:
    spool = Path(workplace.home, "spool")
    over = [*_over(spool_files(spool), before, most_bytes), *_set_aside(spool / "bad", before)]
    if over:
        said: dict[str, object] = {"what": "spool", "number": len(over)}
        workplace.hand_back(job, [Job("count_dropped", said, "spool")])
    for path in over:
        path.unlink(missing_ok=True)
        Path(f"{path}.reason").unlink(missing_ok=True)
    return len(over)


def _drop_workers(home: str, before: float) -> int:
    time = stored_time(int(before * 1e9))
    return sum(drop_archived(hive, time) for hive in hives(home))


def _over(files: list[Path], before: float, most_bytes: float) -> Iterator[Path]:
    """Yield the oldest; the names of the files begin with the time of their event, in ns."""
    sizes = {path: _size(path) for path in files}
    left = sum(sizes.values())
    for path, size in sizes.items():
        stamp = path.name.partition("_")[0]
        if left > most_bytes or (stamp.isdigit() and int(stamp) < before * 1e9):
            left -= size
            yield path


def _set_aside(folder: Path, before: float) -> Iterator[Path]:
    for path in folder.glob("*"):
        if path.suffix != ".reason" and path.is_file() and path.lstat().st_mtime < before:
            yield path


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
