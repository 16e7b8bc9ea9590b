"""Operations of hives. RecordStatus is declared in a module that its sender may import."""

from hivepipe.jobs.args import Args, Every
from hivepipe.jobs.worker_status import RecordStatus
from hivepipe.queue.names import SLOW

__all__ = ["CheckHives", "RecordStatus"]


class CheckHives(
    Args,
    handler="hive.check_hives",
    priority=6,
    queue=SLOW,
    every=Every(60, "hives", "dead and silent hive workers seem busy"),
):
    """Check every worker of a home."""
