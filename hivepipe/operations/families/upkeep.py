"""Operations of the pipeline itself."""

from hivepipe.db.database import Database
from hivepipe.jobs.args import HERE, Args, Every
from hivepipe.jobs.origin import Origin
from hivepipe.queue.names import SLOW


class Probe(Args, handler="families.upkeep.probe", without_session=True):
    """The event of `hivepipe doctor --probe`, of which only the id is recorded."""


def probe(_db: Database, _job: Origin, _args: Probe) -> None:
    """Do nothing, because the id of an applied job is recorded anyway."""


class RecordSlot(Args, handler="slots.record_slot", priority=9, without_session=True):
    """A slot whose job ran outside a transaction of the store."""

    name: str = ""
    opened: int
    executed_ns: int


class DropDeadWorkers(
    Args,
    handler="upkeep.drop_dead_workers",
    priority=6,
    queue=HERE,
    every=Every(30, "stale_workers", "killed workers stay listed"),
):
    """Remove the registrations of dead workers."""


class PromoteRetries(
    Args,
    handler="upkeep.promote_retries",
    priority=4,
    queue=HERE,
    every=Every(5, "retries", "failed attempts are not retried", "writer"),
):
    """Put jobs whose next attempt is due back into their queues."""


class DrainSpool(
    Args,
    handler="upkeep.drain_spool",
    priority=4,
    queue=HERE,
    every=Every(5, "spool", "events in the spool stay there", "writer"),
):
    """Move spooled events into Redis."""


class RecordActivity(
    Args,
    handler="upkeep.record_activity",
    priority=5,
    queue=HERE,
    every=Every(10, "activity", "active sessions seem silent", "writer"),
):
    """Move the activity of sessions into the store."""


class BringBackStrays(
    Args,
    handler="upkeep.bring_back_strays",
    priority=6,
    queue=HERE,
    every=Every(30, "strays", "jobs of killed workers stay lost", "writer"),
):
    """Requeue lost jobs of killed workers."""


class WriteBriefings(
    Args,
    handler="upkeep.write_briefings",
    priority=8,
    queue=HERE,
    every=Every(60, "briefings", "briefings are out of date", "writer"),
):
    """Update the files that briefings are read from."""


class ExportSkills(
    Args,
    handler="upkeep.export_skills",
    priority=8,
    queue=SLOW,
    every=Every(30, "exports", "skill-usage.json is out of date", "slow"),
):
    """Update the exports."""
