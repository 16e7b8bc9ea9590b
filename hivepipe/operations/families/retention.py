"""Operations that delete outdated data and clean up agents."""

from hivepipe.jobs.args import HERE, Args, Every
from hivepipe.jobs.schedule_table import CLEANUP
from hivepipe.queue.names import SLOW


class CountDropped(Args, handler="prune_files.count_dropped", priority=9, without_session=True):
    """Count spooled events that are about to be deleted as outdated."""

    what: str
    number: int


class DeleteOutdated(Args, handler="prune.delete_outdated", priority=9, without_session=True):
    """Delete some of a table's rows that are older than a time."""

    table: str
    before: str = ""
    keys: list[str | int]


class CleanupAgents(
    Args,
    handler="cleanup.cleanup_agents",
    priority=6,
    queue=HERE,
    every=Every(600, CLEANUP, "rows of finished agents accumulate"),
):
    """Soft-delete outdated agents."""

    trigger: str = ""


class LogCleanups(Args, handler="cleanup.log_cleanups", priority=8, queue=SLOW):
    """Write the runs of the cleanup to its log file."""
