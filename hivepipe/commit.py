"""Group commit: many jobs, one transaction, a savepoint each.

The unit of failure is the job for its own faults (its savepoint is rolled back, the others
commit) and the batch for the store's (nothing was written; all of it comes back).
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from hivepipe.envelope import Envelope
from hivepipe.errors import JobError
from hivepipe.handlers.registry import execute
from hivepipe.process_log import about_job
from hivepipe.store.database import Database

_JOBS_FAULT = (
    JobError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)


@dataclass
class Outcome:
    """What became of a batch: indexes of what is committed, and of what failed with why."""

    committed: list[int] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)


def commit_batch(
    db: Database, jobs: list[Envelope], mark: Callable[[str], None] = lambda _id: None
) -> Outcome:
    """Execute the jobs in one transaction; sqlite3.OperationalError: the store, nothing is written.

    `mark` is told which job is being executed, and "" when none is.
    """
    outcome = Outcome()
    with db.transaction():
        for index, job in enumerate(jobs):
            mark(job.id)
            about_job(job.id, job.operation, job.session)
            fault = own_fault(db, job)
            if fault:
                outcome.failed[index] = fault
            else:
                outcome.committed.append(index)
            mark("")
    about_job()
    return outcome


def own_fault(db: Database, job: Envelope) -> Exception | None:
    """Execute a job in its savepoint; return what is wrong with it: then nothing of it is left.

    sqlite3.Error: the store is at fault.
    """
    try:
        with db.savepoint():
            execute(db, job)
    except _JOBS_FAULT as error:
        return error
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001  a handler's bug must not stop the others
        return error
    return None
