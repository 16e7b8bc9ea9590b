"""prune_files: delete outdated archives, logs, spooled events and archived hive workers.

Dropped events are counted before they are deleted. `hivepipe status` shows their number among the
jobs without effect. A kill between the two steps can count an event twice, but every dropped event
is counted.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hivepipe.archive.search.index_file import remove_index
from hivepipe.config.retention import Limits, limits_of
from hivepipe.db.applied import count
from hivepipe.db.database import Database
from hivepipe.errors import BadEnvelopeError, HiveError
from hivepipe.files.deletion_log import record
from hivepipe.files.logs import AUDIT_LOG, is_own
from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder, logs_folder
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations.archive import archives_of
from hivepipe.operations.deletion_day import DAY_SECS, first_deletion, may_delete
from hivepipe.operations.families.retention import CountDropped
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.search import index_path
from hivepipe.orchestrator.folder import known_hives
from hivepipe.orchestrator.retire import drop_archived
from hivepipe.queue.spooled import is_spool_file, waiting_files
from hivepipe.redact.audit_log import rotate
from hivepipe.stack.processes import PROCESSES
from hivepipe.times import stored_time

AUDIT_DAYS = 90

_OF_A_PROCESS = re.compile(
    rf"({'|'.join(('supervisord', 'forwarder', *(each.name for each in PROCESSES)))})\.log\.\d+"
).fullmatch

logger = logging.getLogger("hivepipe.prune")


class Outdated(NamedTuple):
    """One outdated file; an archive has a `key`, and stays if it was modified after `before`."""

    kind: str
    path: str
    age_secs: float
    rule: str
    key: str = ""
    before: float = 0.0


class Pruned(NamedTuple):
    """The number of deleted files of each kind."""

    archives: int
    logs: int
    events: int
    workers: int


def prune_files(context: JobContext, job: Origin, _args: Args) -> None:
    """Delete the files that were outdated at the time of the job's event.

    Nothing is deleted on the first day after an installation. During that day `hivepipe status`
    announces the files that will be deleted.
    """
    if not may_delete(context.home, job):
        return
    dropped = drop_outdated(context, job)
    if any(dropped):
        logger.info("deleted %d archives, %d logs, %d events, %d archived workers", *dropped)


def drop_outdated(context: JobContext, job: Origin) -> Pruned:
    """Delete outdated files and hive workers; return how many of each kind.

    Raise RetentionError if the limits are invalid.
    """
    home, now = context.home, job.event_time_ns / 1e9
    limits = limits_of(home)
    if AUDIT_LOG in Manifest(home).made():
        rotate(kept_folder(home))
    dropped = Counter(each.kind for each in _drop(context, job, outdated(home, now, limits)))
    workers = _drop_workers(home, now - limits.workers * DAY_SECS, limits)
    return Pruned(dropped["archive"], dropped["log"], dropped["event"], workers)


def announced_deletions(home: str, now: float) -> list[Outdated]:
    """Return the files that will be deleted at the end of the first day after an installation.

    After that day, return []. Raise RetentionError if the limits are invalid.
    """
    if not os.path.isdir(home) or now >= first_deletion(home):
        return []
    return [*outdated(home, first_deletion(home), limits_of(home))]


def outdated(home: str, now: float, limits: Limits) -> Iterator[Outdated]:
    yield from _archives_over(home, now, limits)
    yield from _logs_over(home, now, limits)
    yield from _events_over(home, now, limits)


def _drop(context: JobContext, job: Origin, found: Iterator[Outdated]) -> Iterator[Outdated]:
    """Delete outdated files, except archives that have changed since; yield the deleted ones."""
    found_now = [*found]
    events = [each for each in found_now if each.kind == "event"]
    if events:
        dropped = CountDropped(what="spool", number=len(events))
        context.follow_up(job, [dropped.job(dropped.what)])
    for each in found_now:
        context.check_stop()
        if _remove(context.home, each):
            record(context.home, each.kind, each.path, each.age_secs, each.rule)
            yield each
    if any(each.kind == "archive" for each in found_now):
        remove_index(index_path(context.home))


def _remove(home: str, each: Outdated) -> bool:
    if each.kind == "archive":
        return archives_of(home).remove_if_older(each.key, each.before)
    Path(each.path).unlink(missing_ok=True)
    if each.kind == "event":
        Path(f"{each.path}.reason").unlink(missing_ok=True)
    return True


def count_dropped(db: Database, _job: Origin, args: CountDropped) -> None:
    """Count the spooled events that `drop_outdated` is about to delete.

    Raise BadEnvelopeError without a kind, or for a negative number.
    """
    if not args.what or args.number < 0:
        raise BadEnvelopeError("nothing to count")
    count(db, f"dropped:{args.what}", args.number)


def _archives_over(home: str, now: float, limits: Limits) -> Iterator[Outdated]:
    archives, rule = archives_of(home), f"[retention] archives = {limits.archives:g}"
    before = now - limits.archives * DAY_SECS
    for key, entry in sorted(archives.index.entries().items()):
        path = f"{archives.root}/{entry['path']}"
        changed_at = _changed_at(path)
        if changed_at is None or changed_at < before:
            yield Outdated("archive", path, now - (changed_at or now), rule, key, before)


def _logs_over(home: str, now: float, limits: Limits) -> Iterator[Outdated]:
    """Yield the outdated rotated logs of the stack's processes, of hooks and of exports."""
    manifest = Manifest(home)
    found = {path for path in Path(home, "logs").glob("*.log.*") if _OF_A_PROCESS(path.name)}
    for folder in {logs_folder(home), kept_folder(home)}:
        found |= {path for path in Path(folder).glob("*.log.*") if is_own(path, manifest)}
    for path in sorted(found):
        is_audit = path.name.startswith(AUDIT_LOG)
        days = AUDIT_DAYS if is_audit else limits.logs
        rule = f"audit log: {days} days" if is_audit else f"[retention] logs = {days:g}"
        changed_at = _changed_at(path)
        if path.is_file() and changed_at and changed_at < now - days * DAY_SECS:
            yield Outdated("log", str(path), now - changed_at, rule)


def _events_over(home: str, now: float, limits: Limits) -> Iterator[Outdated]:
    spool, before = Path(home, "spool"), now - limits.spool * DAY_SECS
    over = {*_over(waiting_files(spool), before, limits.spool_mb * 1e6)}
    over |= {*_set_aside(spool / "bad", before)}
    for path in sorted(over):
        changed_at = _changed_at(path)
        if changed_at is not None and is_spool_file(path.name):
            rule = f"[retention] spool = {limits.spool:g}, spool_mb = {limits.spool_mb:g}"
            yield Outdated("event", str(path), max(now - changed_at, 0.0), rule)


def _drop_workers(home: str, before: float, limits: Limits) -> int:
    time = stored_time(int(before * 1e9))
    dropped: list[Path] = []
    for hive in known_hives(home):
        try:
            dropped += drop_archived(hive.migrated(), time)
        except (HiveError, OSError) as error:  # go on with the other hives
            logger.warning("%s: %s", hive.root, error)
    for folder in dropped:
        rule = f"[retention] workers = {limits.workers:g}"
        record(home, "worker", str(folder), limits.workers * DAY_SECS, rule)
    return len(dropped)


def _over(files: list[Path], before: float, most_bytes: float) -> Iterator[Path]:
    """Yield outdated files, then the oldest remaining files until the rest fits `most_bytes`."""
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


def _changed_at(path: str | Path) -> float | None:
    try:
        return os.lstat(path).st_mtime
    except FileNotFoundError:
        return None
