"""prune: find what is over its time, and hand its deletion back in small pieces."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hivepipe.config import here
from hivepipe.envelope import Envelope
from hivepipe.errors import BadEnvelopeError
from hivepipe.handlers.workplace import Workplace
from hivepipe.jobs import Job
from hivepipe.queues.connection import connect
from hivepipe.queues.horizon import oldest_job_time
from hivepipe.store import retention
from hivepipe.store.database import Database
from hivepipe.store.location import database_path

KEYS_PER_JOB = 500
KEYS_PER_RUN = 50_000


def prune(workplace: Workplace, job: Envelope) -> None:
    """Hand back the deletion of all rows that are over their time at the time of the event."""
    now = datetime.fromtimestamp(job.event_time_ns / 1e9, UTC)
    with closing(Database(database_path(workplace.home))) as db:
        for table, days in retention.DAYS.items():
            workplace.check_stop()
            before = _text(now - timedelta(days=days))
            if table == "applied":
                before = min(before, _horizon(workplace.home, before))
            keys = retention.outdated(db, table, before, KEYS_PER_RUN)
            workplace.hand_back(job, _deletions(table, before, keys))


def _horizon(home: str, otherwise: str) -> str:
    """A job that may still come must find that it was applied."""
    with connect(here()[0].socket) as connection:
        return oldest_job_time(connection, Path(home, "spool")) or otherwise


def _deletions(table: str, before: str, keys: list[str | int]) -> list[Job]:
    return [
        Job(
            "delete_outdated",
            {"table": table, "before": before, "keys": [*keys[at : at + KEYS_PER_JOB]]},
            table,
        )
        for at in range(0, len(keys), KEYS_PER_JOB)
    ]


def delete_outdated(db: Database, job: Envelope) -> None:
    """Delete one piece of what `prune` found."""
    table, keys = job.text("table"), job.payload.get("keys")
    if table not in retention.DAYS or not isinstance(keys, list):
        raise BadEnvelopeError("nothing to delete")
    known = [key for key in keys if isinstance(key, str | int)]
    retention.delete(db, table, job.text("before"), known)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
