"""Apply spooled events to the store without Redis: the direct path and `hivepipe drain`.

With HIVEPIPE_USE_QUEUE=false a hook spools its event and starts `python -I -m hivepipe.direct
<file>`. A file is removed from the spool when all its jobs are applied. If a job fails, the file
stays.

Only one such process per home works at a time. This process also applies the files of the processes
that wait. Otherwise fifty concurrent hooks would wait for each other's transactions.
"""

import os
import sqlite3
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from hivepipe import settings
from hivepipe.config.config_file import load
from hivepipe.db.applied import is_applied
from hivepipe.db.database import Database, open_database
from hivepipe.errors import BadEnvelopeError, HivepipeError, NewerEnvelopeError
from hivepipe.files import core_dumps
from hivepipe.files.regular_file import read_text
from hivepipe.jobs.envelope import Envelope, follow_ups, read_envelope
from hivepipe.operations.custom_runs import custom_jobs
from hivepipe.operations.declared import slow_queue
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.session_export import SessionExport
from hivepipe.operations.skill_exports import SkillExports
from hivepipe.operations.slow import context_at_once, execute_slow
from hivepipe.queue.raw_spool import convert_all
from hivepipe.queue.spool import spool_folders
from hivepipe.queue.spooled import (
    SpooledJob,
    abandoned,
    raw_events,
    read_spool_file,
    set_aside,
    spool_files,
)
from hivepipe.redact.configured import use_rules
from hivepipe.stack.lock import locked_folder
from hivepipe.worker.group_commit import own_fault

BUSY_TIMEOUT_SECS = 1.0
FILES_PER_TRANSACTION = 100


@dataclass
class Report:
    """The results by file: `applied` counts files, `failed` and `set_aside` map them to reasons."""

    applied: int = 0
    failed: dict[Path, str] = field(default_factory=dict)
    set_aside: dict[Path, str] = field(default_factory=dict)
    bad: dict[Path, str] = field(default_factory=dict)  # files that are set aside after the others
    operations_failed: list[str] = field(default_factory=list)  # from packages; not retried


def apply_files(home: str, db: Database, paths: list[Path]) -> Report:
    """Apply spool files, a hundred per transaction.

    If the database fails, raise sqlite3.Error; the files that were not applied stay.
    """
    report = Report()
    for at in range(0, len(paths), FILES_PER_TRANSACTION):
        read = {path: _read(path, report) for path in paths[at : at + FILES_PER_TRANSACTION]}
        reasons: dict[Path, list[str]] = {path: [] for path, jobs in read.items() if jobs}
        if not reasons:
            continue
        with db.transaction():
            for path in reasons:
                reasons[path] += [_write(db, job) for job in read[path] if not _is_slow(job)]
        context = context_at_once(home, db)
        for path in reasons:  # after the commit, so that no process waits for the lock
            reasons[path] += [_work(context, job.envelope) for job in read[path] if _is_slow(job)]
            why = "; ".join(filter(None, reasons[path]))
            if why:
                report.failed[path] = why
            else:
                custom = [_work(context, job) for job in _custom(read[path])]
                report.operations_failed += filter(None, custom)
                path.unlink(missing_ok=True)
                report.applied += 1
    for path, reason in report.bad.items():
        _set_aside(path, reason, report)
    return report


def _read(path: Path, report: Report) -> list[SpooledJob]:
    try:
        return read_spool_file(path)
    except FileNotFoundError:
        pass  # another process has applied the file
    except NewerEnvelopeError as error:  # the file stays for a newer hivepipe
        report.failed[path] = str(error)
    except BadEnvelopeError as error:
        report.bad[path] = str(error)
    except OSError as error:  # an error of the disk or the process, not of the event
        report.failed[path] = f"cannot be read: {error.strerror}"
    return []


def _is_slow(spooled: SpooledJob) -> bool:
    return slow_queue(spooled.envelope.operation) is not None


def _write(db: Database, spooled: SpooledJob) -> str:
    """Execute a job that writes to the store; return an error text or ""."""
    if any(is_applied(db, twin) for twin in spooled.message.twins.split()):
        return ""
    fault = own_fault(db, spooled.envelope)
    return f"{spooled.envelope.operation}: {fault}" if fault else ""


def _work(context: JobContext, job: Envelope) -> str:
    """Execute a job outside of a transaction; return an error text or ""."""
    try:
        execute_slow(context, job)
    except Exception as error:  # noqa: BLE001  a handler's bug must not stop the others
        return f"{job.operation}: {error}"
    return ""


def _custom(spooled: list[SpooledJob]) -> list[Envelope]:
    """Return the jobs that operations of installed packages add to these jobs."""
    parents = [job.envelope for job in spooled]
    messages = [each for job in parents for each in follow_ups(job, custom_jobs(job))]
    return [read_envelope(message.envelope) for message in messages]


def drain(home: str) -> Report:
    """Apply the whole spool of a home, write the exports, set aside files that dead hooks left.

    Return the results by file. Raise StoreError or sqlite3.Error if the database cannot be used.
    """
    raw = raw_events(home)
    convert_all(home)
    spools = [Path(folder) for folder in spool_folders(home)]
    db = open_database(home)
    try:
        report = apply_files(home, db, [path for spool in spools for path in spool_files(spool)])
        SkillExports(home).finish()
        SessionExport(home).finish()
    finally:
        db.close()
    for spool in spools:
        for path in list(abandoned(spool, time.time())):
            _set_aside(path, "half-written: its hook died", report)
    _report_unconverted(raw, report)
    return report


def _report_unconverted(raw: list[Path], report: Report) -> None:
    """Report the raw events that are not converted, and the raw events that were set aside."""
    for path in raw:
        reason = path.parent / "bad" / f"{path.name}.reason"
        if path.exists():
            report.failed[path] = "not converted: a newer hivepipe wrote it, or it cannot be read"
        elif reason.exists():
            report.set_aside[path] = read_text(reason, errors="replace").strip()


def _set_aside(path: Path, reason: str, report: Report) -> None:
    try:
        set_aside(path, reason)
    except OSError as error:
        report.failed[path] = f"{reason}; and it cannot be set aside: {error.strerror}"
    else:
        report.set_aside[path] = reason


def apply_in_turn(home: str, path: Path) -> None:
    """Apply a file and all others in the spool.

    Raise LockHeldError if another process is applying the spool: that process also applies the
    file. Raise StoreError or sqlite3.Error if the database cannot be used. A process lists the
    spool again after it has released the lock, so that no file is missed.
    """
    tried: set[Path] = set()
    while waiting := [file for file in spool_files(path.parent) if file not in tried]:
        with locked_folder(str(path.parent), 0):
            with open_database(home, BUSY_TIMEOUT_SECS) as db:
                apply_files(home, db, waiting)
            SkillExports(home).tidy()
            SessionExport(home).finish()
        tried.update(waiting)


def main() -> None:
    """Apply the named file and the rest of its spool. After an error, files stay in the spool."""
    os.umask(0o077)
    core_dumps.leave_none()
    try:
        place, config = load()
        home = place.home
        # This variable is not passed on to this process, and some jobs check it.
        settings.use({**config.for_settings(), "HIVEPIPE_USE_QUEUE": "false"})
        use_rules(home)
        convert_all(home)
        apply_in_turn(home, Path(sys.argv[1]))
    except (HivepipeError, sqlite3.Error, OSError):
        return


if __name__ == "__main__":
    main()
