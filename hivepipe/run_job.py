"""The one function RQ ever calls. Its path is stored in every job: it never moves."""

from functools import cache
from pathlib import Path

from hivepipe.envelope import read_envelope
from hivepipe.handlers.registry import execute
from hivepipe.home import locate
from hivepipe.store.database import Database
from hivepipe.store.location import database_path


def run_job(envelope: str) -> None:
    """Execute one job in its own transaction.

    The database is that of HIVEPIPE_HOME, else of the working directory's project. Errors go to
    RQ, which retries and then keeps the job as failed.
    """
    job = read_envelope(envelope)
    db = _database(str(database_path(locate(".").home)))
    with db.transaction():
        execute(db, job)


@cache
def _database(path: str) -> Database:
    """One connection per process and database: opening costs more than a job."""
    return Database(Path(path))
