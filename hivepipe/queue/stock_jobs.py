"""Jobs of stock `rq worker`s: count finished jobs and promote retries that are due.

RQ itself marks a job as finished, and lets it expire after a minute. So hivepipe adds the job's id
to a set when the job's effect is committed. The job is counted exactly once, after RQ has finished
or expired the job. The job counts once even if it is executed several times or another worker
acknowledges it.

    hivepipe:executed   set   ids of jobs that a stock worker has executed, not counted yet
"""

from typing import Any

from redis import Redis

from hivepipe.queue.names import QUEUES
from hivepipe.queue.scripts import script

EXECUTED_KEY = "hivepipe:executed"

_NOTE = script("note_executed", EXECUTED_KEY=EXECUTED_KEY)

COUNT = script("count_executed", EXECUTED_KEY=EXECUTED_KEY)


# No retry in these queues has a longer delay, unless the clock was set back.
LONGEST_SECS = 60
_PROMOTE = script("promote_due", LONGEST_SECS=LONGEST_SECS)


def promote_due(connection: Redis) -> int:
    """Put jobs whose next attempt is due back into their queues; return their number."""
    promoted: Any = connection.eval(_PROMOTE, 0, *QUEUES)
    return int(promoted)


def has_due_retries(connection: Redis, now: float) -> bool:
    """Tell whether a retry is due, or so far ahead that the clock must have been set back."""
    spans = (("-inf", now), (now + LONGEST_SECS, "+inf"))
    keys = [f"rq:scheduled:{queue}" for queue in QUEUES]
    return any(connection.zcount(key, *span) for key in keys for span in spans)


def note_executed(connection: Redis, job_id: str) -> None:
    """Add a job to `hivepipe:executed` when its effect is committed, before RQ finishes the job."""
    connection.eval(_NOTE, 0, job_id)


def count_tick(connection: Redis) -> None:
    """Count the run of a tick at once, because a tick's id may be reused before RQ finishes it."""
    connection.incr("hivepipe:done")


def count_executed(connection: Redis) -> None:
    """Count the jobs in `hivepipe:executed` that RQ has finished or expired."""
    connection.eval(COUNT, 0)
