"""Group commit: many jobs in one transaction, with a savepoint each.

An error of a job rolls back its savepoint, and the other jobs are committed. An error of the store
rolls back the whole batch, and all jobs of the batch are retried.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from hivepipe.db.database import Database
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.process_log import about_job
from hivepipe.jobs.retry import is_store_error
from hivepipe.operations.registry import execute


@dataclass
class Outcome:
    """The result of a batch: indexes of committed jobs, and index -> error of the failed jobs."""

    committed: list[int] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)


def commit_batch(
    db: Database, jobs: list[Envelope], mark: Callable[[str], None] = lambda _id: None
) -> Outcome:
    """Execute the jobs in one transaction.

    `mark` is called with the id of each job before it is executed, and with "" after it. Raise
    sqlite3.Error if the store fails; in that case nothing was written.
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
    except Exception as error:  # a handler's bug must not stop the others
        if isinstance(error, sqlite3.Error) and is_store_error(error):
            raise
        return error
    return None
