"""Follow-up jobs: results are stored at once, and work is enqueued.

A result is an operation that writes to the store. Each result is applied once, by its id, in the
process that made the result. If the store cannot be written, the result goes to the writer with the
same id, through Redis or else the spool. So a result is neither lost nor applied twice. All other
operations are work.
"""

import logging

from redis import Redis, ResponseError

from hivepipe.db.database import SHORT_TIMEOUT_SECS, open_database
from hivepipe.db.location import database_path
from hivepipe.errors import StoreError
from hivepipe.events.job_plan import Job, Message
from hivepipe.home import Place, read_record
from hivepipe.jobs.envelope import follow_up, follow_ups, read_envelope
from hivepipe.jobs.origin import Origin
from hivepipe.operations.declared import slow_queue
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.registry import apply_results
from hivepipe.queue.client import RefusedError
from hivepipe.queue.enqueue import Work, enqueue, enqueue_work
from hivepipe.queue.full_memory import is_full
from hivepipe.queue.spool import keep_event

RESULTS_PER_FILE = 10  # keeps a spool file far below its largest size

logger = logging.getLogger("hivepipe.follow_up")


def follow_up_job(
    home: str, connection: Redis, address: str, parent: Origin, jobs: list[Job]
) -> None:
    """Store results, or raise OSError; then enqueue the work, or raise RefusedError."""
    results = [follow_up(parent, job) for job in jobs if slow_queue(job.operation) is None]
    works = [_work(parent, job) for job in jobs if slow_queue(job.operation) is not None]
    is_periodic = bool(parent.periodic)
    if results and not _are_stored(home, results):
        try:
            enqueue(connection, address, results, is_periodic=is_periodic)
        except RefusedError:
            place = Place("", home, read_record(home))
            for at in range(0, len(results), RESULTS_PER_FILE):
                some = results[at : at + RESULTS_PER_FILE]
                keep_event(place, parent.event_time_ns, some)
    if works:
        enqueue_work(connection, works, is_periodic=is_periodic)


def enqueue_or_spool(context: JobContext, parent: Origin, jobs: list[Job]) -> None:
    """Store results; enqueue the work or, with a full Redis, spool it. May raise OSError."""
    try:
        context.follow_up(parent, jobs)
    except (ResponseError, RefusedError) as error:
        if not is_full(error):
            raise
        works = [job for job in jobs if slow_queue(job.operation) is not None]
        place = Place("", context.home, read_record(context.home))
        keep_event(place, parent.event_time_ns, follow_ups(parent, works))


def _work(parent: Origin, job: Job) -> Work:
    message = follow_up(parent, job, queue=slow_queue(job.operation) or "")
    return message, read_envelope(message.envelope).settle_secs


def _are_stored(home: str, results: list[Message]) -> bool:
    path = database_path(home)
    try:
        if not path.exists():  # only the writer creates a store
            raise StoreError(f"{path} is missing")
        with open_database(home, SHORT_TIMEOUT_SECS) as db:
            apply_results(db, results)
    except Exception as error:  # noqa: BLE001  the writer retries a result, or fails it
        logger.info("%d results go to the writer: %s", len(results), error)
        return False
    return True
