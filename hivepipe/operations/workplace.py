"""The environment of a slow handler: its home and its callbacks."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from hivepipe.errors import StoppedError
from hivepipe.events.job_plan import Job
from hivepipe.home import Place, read_record
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.origin import Origin

LONGEST_SETTLE_SECS = 600.0


@dataclass(frozen=True, slots=True)
class Workplace:
    """The home, the address of its Redis, the way to hand jobs back, and the request to stop."""

    home: str
    address: str
    hand_back: Callable[[Origin, list[Job]], None]  # returns when the jobs are safe
    stop_requested: Callable[[], bool] = lambda: False

    def check_stop(self) -> None:
        """Raise StoppedError when the process has been told to end; the job comes again."""
        if self.stop_requested():
            raise StoppedError


def address_of(home: str) -> str:
    """Return where the Redis of a home listens, as its record says."""
    return Place("", home, read_record(home)).socket


def settle_secs(job: Envelope) -> float:
    """Return the delay in seconds that the job asks for, because what it reads still grows."""
    wanted = job.payload.get("settle_s")
    if isinstance(wanted, int | float) and math.isfinite(wanted):
        return min(max(float(wanted), 0.0), LONGEST_SETTLE_SECS)
    return 0.0
