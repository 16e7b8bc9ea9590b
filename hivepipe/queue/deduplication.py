"""The time of the oldest job. Ids in the table `applied` that are older are no longer needed."""

from pathlib import Path
from typing import Any

from redis import Redis

from hivepipe.events.job_plan import utc
from hivepipe.queue.spooled import waiting_files
from hivepipe.queue.ticks import TICK_PREFIX

_JOBS = b"rq:job:"
_AT_A_TIME = 1000


def oldest_job_time(connection: Redis, spool: Path) -> str | None:
    """Return the creation time of the oldest job in Redis or the spool, or None if there is no job.

    The time is text in RQ's format.
    """
    found: list[str] = [_of_spooled(path) for path in waiting_files(spool)[:1]]
    keys: Any = connection.scan_iter(_JOBS + b"*", count=_AT_A_TIME)
    jobs = [key for key in keys if not key.startswith(_JOBS + TICK_PREFIX)]
    for at in range(0, len(jobs), _AT_A_TIME):
        pipe = connection.pipeline(transaction=False)
        for key in jobs[at : at + _AT_A_TIME]:
            pipe.hget(key, "created_at")
        # A key of another type gives an error, which is ignored.
        times = pipe.execute(raise_on_error=False)
        found += [time.decode("utf-8", "replace") for time in times if isinstance(time, bytes)]
    return min(found, default=None)


def _of_spooled(path: Path) -> str:
    """Return the time in a name `<event_time_ns>_<pid>.*`, or 1970 if the name has no time."""
    digits = path.name.partition("_")[0]
    return utc(int(digits) if digits.isdigit() else 0)
