"""prune: find outdated rows and delete them, a few at a time."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hivepipe.config.retention import limits_of
from hivepipe.db import retention
from hivepipe.db.database import Database, open_database, write_shortly
from hivepipe.errors import BadEnvelopeError, RetentionError
from hivepipe.files.deletion_log import record
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations.deletion_day import may_delete
from hivepipe.operations.families.retention import DeleteOutdated
from hivepipe.operations.job_context import JobContext
from hivepipe.queue.all_jobs import oldest_job_time
from hivepipe.queue.connection import connect
from hivepipe.times import stored_time

KEYS_PER_WRITE = 100
KEYS_PER_RUN = 50_000
DAY_NS = 86_400 * 10**9

logger = logging.getLogger("hivepipe.prune")


def prune(context: JobContext, job: Origin, _args: Args) -> None:
    """Delete rows that were outdated at the time of the job's event, at most KEYS_PER_RUN a table.

    Nothing is deleted on the first day after an installation (`may_delete`).
    """
    if not may_delete(context.home, job):
        return
    with open_database(context.home) as db:
        for table, days in _days(context.home).items():
            context.check_stop()
            before = stored_time(job.event_time_ns - int(days * DAY_NS))
            if table == "applied":
                before = min(before, _horizon(context, before))
            keys = retention.outdated(db, table, before, KEYS_PER_RUN)
            if keys:
                rule = f"{days:g} days"
                record(context.home, "rows", table, days * 86_400, rule, len(keys))
            write_shortly(db, _deletions(db, table, before, keys))


def _days(home: str) -> dict[str, float]:
    """Return table -> days of retention. If the limits are invalid, rows of hives are kept."""
    try:
        return retention.DAYS | dict.fromkeys(retention.HIVE, limits_of(home).workers)
    except RetentionError as error:
        logger.warning("%s", error)
        return {**retention.DAYS}


def _horizon(context: JobContext, otherwise: str) -> str:
    """Return the time of the oldest job in Redis or the spool, or `otherwise` if there is none.

    Rows of `applied` since that time are kept, so that no waiting job is applied twice.
    """
    with connect(context.address) as connection:
        return oldest_job_time(connection, Path(context.home, "spool")) or otherwise


def _deletions(
    db: Database, table: str, before: str, keys: list[str | int]
) -> Iterator[Callable[[], None]]:
    for at in range(0, len(keys), KEYS_PER_WRITE):
        yield partial(retention.delete, db, table, before, keys[at : at + KEYS_PER_WRITE])


def delete_outdated(db: Database, _job: Origin, args: DeleteOutdated) -> None:
    """Delete some outdated rows. Only `prune` of 1.0.0 enqueues this job.

    Raise BadEnvelopeError for a table whose rows are not deleted.
    """
    if not retention.is_pruned(args.table):
        raise BadEnvelopeError(f"rows of {args.table} are not deleted")
    known = [key for key in args.keys if isinstance(key, str | int)]
    retention.delete(db, args.table, args.before, known)
