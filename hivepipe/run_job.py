"""The function that RQ calls for every job. Its path is stored in each job, so it must not move.

A stock `rq worker` retries a job three times, after 1, 2 and 4 seconds; then the job has failed.
For errors that the job did not cause (a locked database, a full disk) the function returns RQ's
`Retry`, without a limit. Handlers are imported when a job needs them: RQ forks for each job, and
importing all of them would take longer than most jobs.
"""

import math
import sqlite3
from contextlib import suppress
from functools import cache, lru_cache, partial

from redis import Redis
from rq import Retry, get_current_job
from rq.job import Job as RqJob

from hivepipe import settings
from hivepipe.config.config_file import Config
from hivepipe.db.database import Database, open_database
from hivepipe.errors import OperationFailedError, StoreError, TryLaterError
from hivepipe.events.job_plan import Job
from hivepipe.home import Place, locate
from hivepipe.jobs import retry
from hivepipe.jobs.envelope import Envelope, follow_ups, read_envelope
from hivepipe.jobs.origin import Origin
from hivepipe.jobs.schedule_table import CLEANUP, TICK
from hivepipe.operations.custom_runs import custom_jobs
from hivepipe.operations.declared import slow_queue
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.registry import cleanup_cause, execute
from hivepipe.operations.slots import job_due
from hivepipe.operations.slow import execute_at_once, execute_slow
from hivepipe.queue.connection import connect
from hivepipe.queue.enqueue import enqueue
from hivepipe.queue.stock_jobs import count_tick, note_executed
from hivepipe.queue.ticks import scheduler_runs, trigger
from hivepipe.redact.configured import use_rules

MOST_RETRIES = 1_000_000  # no limit in practice; RQ requires a number


def run_job(envelope: str) -> Retry | None:
    """Execute one job (a write in its own transaction); return a Retry to delay it, or None.

    The database belongs to HIVEPIPE_HOME, else to the project of the working directory. Errors of
    the job itself are raised; RQ retries and then keeps the job as failed.
    """
    job = read_envelope(envelope)
    place = locate(".")
    _use_settings(place.home, place.project)
    in_rq = get_current_job()
    connection = in_rq.connection if in_rq else connect(place.socket)
    attempts = (in_rq.number_of_retries or 0) if in_rq else 0
    if in_rq and not attempts and job.settle_secs and scheduler_runs(connection):
        return _again(job.settle_secs)  # the transcript still grows; the scheduler requeues the job
    try:
        if job.operation == TICK:
            _open_slot(connection, place.socket, place.home, job)
        else:
            _execute(place, connection, job)
    except Exception as error:
        delay = _delay_secs(error, job, attempts + 1)
        if not in_rq or delay is None:
            raise
        return _again(delay)
    if in_rq:
        _note(connection, in_rq, job)
    return None


def _again(secs: float) -> Retry:
    """Return a Retry after whole seconds, as RQ requires, at least 1: with 0 RQ would loop."""
    return Retry(max=MOST_RETRIES, interval=max(1, math.ceil(secs)))


def _delay_secs(error: Exception, job: Envelope, attempts: int) -> float | None:
    """Return the delay after an error that the job did not cause, or None to let RQ decide."""
    if isinstance(error, TryLaterError):
        return error.delay_secs
    is_stores = retry.is_store_error(error)
    if isinstance(error, OperationFailedError):
        return retry.operation_delay_secs(attempts, error.retries)
    if slow_queue(job.operation) is None:
        return retry.store_delay_secs(attempts) if is_stores else None
    if is_stores or isinstance(error, OSError):
        errno = getattr(error, "errno", None)
        return retry.file_delay_secs(attempts, is_stores or errno in retry.DISK_ERRORS)
    return None


def _open_slot(connection: Redis, address: str, home: str, tick: Envelope) -> None:
    db = None
    with suppress(sqlite3.Error, StoreError):
        db = _database(home)
    due = job_due(db, tick)
    if due:
        enqueue(connection, address, [due], is_periodic=True)


def _execute(place: Place, connection: Redis, job: Envelope) -> None:
    if slow_queue(job.operation) is not None:
        execute_slow(JobContext(place.home, place.socket, partial(_at_once, place.home)), job)
        return
    db = _database(place.home)
    with db.transaction():
        execute(db, job)
    if jobs := custom_jobs(job):
        enqueue(connection, place.socket, follow_ups(job, jobs))  # in queues of stock workers


def _at_once(home: str, parent: Origin, jobs: list[Job]) -> None:
    execute_at_once(home, _database(home), parent, jobs)


def _note(connection: Redis, in_rq: RqJob, job: Envelope) -> None:
    """Record that a job's effect is committed, and trigger the cleanup that follows from it."""
    if job.operation == TICK:
        count_tick(connection)
        return
    note_executed(connection, in_rq.id)
    if cause := cleanup_cause(job):
        trigger(connection, CLEANUP, cause)


@lru_cache(maxsize=1)
def _use_settings(home: str, project: str) -> None:
    """Apply the settings at the first job; the process keeps them until it ends."""
    settings.use(Config(home, project).for_settings())


@cache
def _database(home: str) -> Database:
    """Return the open database of a home; to open it again would take longer than most jobs."""
    use_rules(home)
    return open_database(home)
