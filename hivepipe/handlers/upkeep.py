"""What the writer and the slow worker do beside the jobs, as jobs: for when neither runs.

The scheduler enqueues these only while the process that they stand in for is not there.
"""

from contextlib import closing
from pathlib import Path

from hivepipe.briefing_files import BriefingFiles
from hivepipe.config import here
from hivepipe.envelope import Envelope
from hivepipe.handlers.session_export import SessionExport
from hivepipe.handlers.skill_exports import SkillExports
from hivepipe.handlers.workplace import Workplace
from hivepipe.heartbeats import Heartbeats
from hivepipe.late_notes import take_in_notes
from hivepipe.queues.connection import connect
from hivepipe.queues.housekeeping import Housekeeper
from hivepipe.queues.stock_jobs import promote_due
from hivepipe.store.database import Database
from hivepipe.store.location import database_path


def promote_retries(_workplace: Workplace, _job: Envelope) -> None:
    """Put jobs whose next attempt is due back into their queues."""
    with connect(here()[0].socket) as connection:
        promote_due(connection)


def drain_spool(workplace: Workplace, _job: Envelope) -> None:
    """Move events that wait on disk into Redis, and notes of tool calls that it refused."""
    address = here()[0].socket
    with connect(address) as connection:
        take_in_notes(connection, workplace.home)
        keeper = Housekeeper(connection, Path(workplace.home), address)
        while keeper.drain() or keeper.has_bad_ones:
            workplace.check_stop()


def bring_back_strays(workplace: Workplace, _job: Envelope) -> None:
    """Bring back what a worker lost when it was killed, and tidy up after it."""
    address = here()[0].socket
    with connect(address) as connection:
        Housekeeper(connection, Path(workplace.home), address).look_after()


def record_activity(workplace: Workplace, _job: Envelope) -> None:
    """Move heartbeats of sessions into the store."""
    with (
        connect(here()[0].socket) as connection,
        closing(Database(database_path(workplace.home))) as db,
    ):
        Heartbeats(connection).flush(db)


def write_briefings(workplace: Workplace, _job: Envelope) -> None:
    """Bring the files up to date that sessions are told from."""
    path = database_path(workplace.home)
    Database(path).close()  # it may not be made yet
    BriefingFiles(workplace.home).write(path)


def export_skills(workplace: Workplace, _job: Envelope) -> None:
    """Bring skill-usage.json and its index up to date, and session.yaml."""
    SkillExports(workplace.home).finish()
    SessionExport(workplace.home).finish()
