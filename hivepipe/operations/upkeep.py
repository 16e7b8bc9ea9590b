"""Periodic work on the pipeline itself: the spool, retries, exports, dead workers.

The writer or the slow worker does this work without a job. The scheduler enqueues these operations
only while that worker does not run, except `drop_dead_workers`, which is always enqueued.
"""

import logging
from pathlib import Path

from hivepipe.db.database import open_database
from hivepipe.db.location import database_path
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations.briefing_files import BriefingFiles
from hivepipe.operations.heartbeats import Heartbeats
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.late_notes import replay_notes
from hivepipe.operations.session_export import SessionExport
from hivepipe.operations.skill_exports import SkillExports
from hivepipe.queue.connection import connect
from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.queue.rq_workers import drop_dead
from hivepipe.queue.stock_jobs import promote_due

logger = logging.getLogger("hivepipe.upkeep")


def drop_dead_workers(context: JobContext, _job: Origin, _args: Args) -> None:
    with connect(context.address) as connection:
        for name, reason in drop_dead(connection):
            logger.warning("worker %s died without unregistering: %s", name, reason)


def promote_retries(context: JobContext, _job: Origin, _args: Args) -> None:
    with connect(context.address) as connection:
        promote_due(connection)


def drain_spool(context: JobContext, _job: Origin, _args: Args) -> None:
    with connect(context.address) as connection:
        replay_notes(connection, context.home)
        keeper = Housekeeper(connection, Path(context.home), context.address)
        while keeper.drain() or keeper.has_unreadable_files:
            context.check_stop()


def bring_back_strays(context: JobContext, _job: Origin, _args: Args) -> None:
    with connect(context.address) as connection:
        Housekeeper(connection, Path(context.home), context.address).maintain()


def record_activity(context: JobContext, _job: Origin, _args: Args) -> None:
    with connect(context.address) as connection, open_database(context.home) as db:
        Heartbeats(connection).flush(db)


def write_briefings(context: JobContext, _job: Origin, _args: Args) -> None:
    path = database_path(context.home)
    open_database(context.home).close()  # creates the database if it is missing
    BriefingFiles(context.home).write(path)


def export_skills(context: JobContext, _job: Origin, _args: Args) -> None:
    SkillExports(context.home).finish()
    SessionExport(context.home).finish()
