"""Apply spooled events straight to the store, without Redis: the direct path and `hivepipe drain`.

With HIVEPIPE_USE_QUEUE=false a hook spools its event and becomes `python -I -m hivepipe.direct
<file>`. A file leaves the spool when all its jobs have had their effect; what fails stays there.
"""

import os
import sqlite3
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from hivepipe.errors import BadEnvelopeError, HivepipeError, JobError
from hivepipe.handlers.registry import execute
from hivepipe.home import locate
from hivepipe.queues.spooled import (
    SpooledJob,
    abandoned,
    read_spool_file,
    set_aside,
    spool_files,
)
from hivepipe.store.applied import is_applied
from hivepipe.store.database import Database
from hivepipe.store.location import database_path

BUSY_TIMEOUT_SECS = 1.0
FILES_PER_TRANSACTION = 100


@dataclass
class Report:
    """What became of the spool's files; `failed` and `set_aside` give the reasons."""

    applied: int = 0
    failed: dict[Path, str] = field(default_factory=dict)
    set_aside: dict[Path, str] = field(default_factory=dict)


def apply_files(db: Database, paths: list[Path]) -> Report:
    """Apply the files, a hundred per transaction; sqlite3.Error: the rest stays in the spool."""
    report = Report()
    for at in range(0, len(paths), FILES_PER_TRANSACTION):
        done: list[Path] = []
        with db.transaction():
            for path in paths[at : at + FILES_PER_TRANSACTION]:
                if _apply_file(db, path, report):
                    done.append(path)
        for path in done:
            path.unlink(missing_ok=True)
        report.applied += len(done)
    return report


def _apply_file(db: Database, path: Path, report: Report) -> bool:
    try:
        spooled = read_spool_file(path)
    except FileNotFoundError:  # another process has taken it in meanwhile
        return False
    except (BadEnvelopeError, OSError) as error:
        _set_aside(path, str(error), report)
        return False
    reasons = [reason for reason in (_apply_job(db, job) for job in spooled) if reason]
    if reasons:
        report.failed[path] = "; ".join(reasons)
    return not reasons


def _apply_job(db: Database, spooled: SpooledJob) -> str:
    """Execute one job; return why it could not be, if so."""
    if any(is_applied(db, twin) for twin in spooled.message.twins.split()):
        return ""
    try:
        with db.savepoint():
            execute(db, spooled.envelope)
    except (JobError, sqlite3.IntegrityError) as error:
        return f"{spooled.envelope.operation}: {error}"
    return ""


def drain(home: str) -> Report:
    """Apply the whole spool of a home; half-written files of dead hooks are set aside."""
    spool = Path(home) / "spool"
    db = Database(database_path(home))
    try:
        report = apply_files(db, spool_files(spool))
    finally:
        db.close()
    for path in list(abandoned(spool, time.time())):
        _set_aside(path, "half-written: its hook died", report)
    return report


def _set_aside(path: Path, reason: str, report: Report) -> None:
    try:
        set_aside(path, reason)
    except OSError as error:
        report.failed[path] = f"{reason}; and it cannot be set aside: {error.strerror}"
    else:
        report.set_aside[path] = reason


def main() -> None:
    """Apply one file, quietly: whatever goes wrong, the file is still in the spool."""
    os.umask(0o077)
    try:
        db = Database(database_path(locate(".").home), BUSY_TIMEOUT_SECS)
        apply_files(db, [Path(sys.argv[1])])
    except (HivepipeError, sqlite3.Error, OSError):
        return


if __name__ == "__main__":
    main()
