"""The one function RQ ever calls. Its path is stored in every job: it never moves."""

from functools import cache, partial

from rq import get_current_job

from hivepipe.config import here
from hivepipe.envelope import Envelope, read_envelope
from hivepipe.handlers.registry import execute
from hivepipe.handlers.slow import (
    HERE,
    SLOW_OPERATIONS,
    execute_at_once,
    execute_slow,
    load_slow,
    load_writes,
)
from hivepipe.handlers.workplace import Workplace
from hivepipe.periodic import TICK, job_of
from hivepipe.queues.connection import connect
from hivepipe.queues.hand_back import enqueue_periodic
from hivepipe.queues.names import LLM, SLOW
from hivepipe.queues.stock_jobs import note_executed
from hivepipe.redaction_config import use_rules
from hivepipe.store.database import Database
from hivepipe.store.location import database_path

load_writes()
load_slow(HERE, SLOW, LLM)


def run_job(envelope: str) -> None:
    """Execute one job, a write in its own transaction.

    The database is that of HIVEPIPE_HOME, else of the working directory's project. Errors go to
    RQ, which retries and then keeps the job as failed.
    """
    job = read_envelope(envelope)
    place, _ = here()
    in_rq = get_current_job()
    if job.operation == TICK:
        connection = in_rq.connection if in_rq else connect(place.socket)
        enqueue_periodic(connection, place.socket, [job_of(job)])
    else:
        _execute(place.home, job)
    if in_rq is not None:
        note_executed(in_rq.connection, in_rq.id)


def _execute(home: str, job: Envelope) -> None:
    db = _database(home)
    if job.operation in SLOW_OPERATIONS:
        execute_slow(Workplace(home, partial(execute_at_once, home, db)), job)
    else:
        with db.transaction():
            execute(db, job)


@cache
def _database(home: str) -> Database:
    """One connection per process and home: opening costs more than a job."""
    use_rules(home)
    return Database(database_path(home))
