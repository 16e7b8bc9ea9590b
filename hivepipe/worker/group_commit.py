"""Group commit: many jobs in one transaction, with a savepoint each.

An error of a job rolls back its savepoint, and the other jobs are committed. An error of the store
rolls back the whole batch, and all its jobs are retried.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from hivepipe.db.database import Database
from hivepipe.errors import JobError
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.process_log import about_job
from hivepipe.operations.registry import execute

_JOB_ERRORS = (
    JobError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)


@dataclass
class Outcome:
    """The result of a batch: indexes of committed jobs, and index -> error of failed ones."""

    committed: list[int] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)


def commit_batch(
    db: Database, jobs: list[Envelope], mark: Callable[[str], None] = lambda _id: None
) -> Outcome:
    """Execute the jobs in one transaction.

    `mark` is called with the id of each job before it is executed, and with "" after it. Raise
    sqlite3.Error if the store fails; then nothing was written.
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
    """Execute a job in its savepoint; return None, or the job's error after a rollback.

    Raise sqlite3.Error if the store fails.
    """
    try:
        with db.savepoint():
            execute(db, job)
    except _JOB_ERRORS as error:
        return error
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001  a handler's bug must not stop the others
        return error
    return None
