"""Decide when outdated data is deleted: not on the first day, and not after a long gap."""

import logging

from hivepipe.files.manifest import Manifest
from hivepipe.jobs.origin import Origin
from hivepipe.operations.slots import is_long_after

DAY_SECS = 86_400.0
LONGEST_GAP_DAYS = 30

logger = logging.getLogger("hivepipe.prune")


def first_deletion(home: str) -> float:
    """Return the time of the first deletion, in seconds since 1970: a day after an installation."""
    return Manifest(home).installed_at() + DAY_SECS


def may_delete(home: str, job: Origin) -> bool:
    """Tell whether the run `job` may delete data: not on the first day after an installation.

    The first run after a month without runs deletes nothing either: the clock may be wrong.
    """
    if job.event_time_ns / 1e9 < first_deletion(home):
        return False
    if is_long_after(home, job, LONGEST_GAP_DAYS):
        logger.warning("%s: nothing is deleted before the next run, in a day", job.operation)
        return False
    return True
