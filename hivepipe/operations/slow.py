"""Operations that run outside the writer's transactions.

The writer moves jobs that may take longer than 100 ms to `slow` or `llm`, each with its own worker.
Short jobs that call the system or Redis (queue HERE) run in the writer, outside its transactions.
All handlers are idempotent (a second execution changes nothing). Handlers enqueue follow-up jobs
through `JobContext.follow_up`.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from hivepipe.db.database import Database, opened
from hivepipe.errors import UnknownOperationError
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import Envelope, follow_up, read_envelope
from hivepipe.jobs.origin import Origin
from hivepipe.operations.declared import handle, slow_queue
from hivepipe.operations.job_context import JobContext, address_of
from hivepipe.operations.registry import apply_results
from hivepipe.operations.slots import turn


def execute_slow(context: JobContext, job: Envelope) -> None:
    """Execute one job outside the writer's transactions.

    A periodic job is not executed if its slot was, or if another process executes the slot now.
    Exceptions propagate to the caller; UnknownOperationError if the operation is not a slow one.
    """
    if slow_queue(job.operation) is None:
        raise UnknownOperationError(f"no handler for operation {job.operation!r}")
    with turn(context, job) as is_ours:
        if is_ours:
            handle(context, job)


def execute_at_once(home: str, db: Database, parent: Origin, jobs: list[Job]) -> None:
    """Store the results of a slow handler, and execute its follow-up work in this process.

    Raise JobError, sqlite3.Error or an error of that work.
    """
    apply_results(db, [follow_up(parent, job) for job in jobs if slow_queue(job.operation) is None])
    context = context_at_once(home, db)
    for job in jobs:
        if slow_queue(job.operation) is not None:
            execute_slow(context, read_envelope(follow_up(parent, job).envelope))


def context_at_once(home: str, db: Database) -> JobContext:
    """Return a context that executes follow-up jobs at once."""
    return JobContext(home, address_of(home), partial(execute_at_once, home, db))


@contextmanager
def at_once(home: str) -> Iterator[JobContext]:
    """Yield a context that executes follow-up jobs at once. Raise StoreError on failure."""
    with opened(home) as db:
        yield context_at_once(home, db)


def manual_origin(operation: str) -> Origin:
    """Return an origin for work that was not enqueued. Follow-up jobs derive their ids from it."""
    return Origin(id=uuid.uuid4().hex, operation=operation, event_time_ns=time.time_ns())
