"""The context in which slow handlers run: the home, and callbacks to the worker."""

from collections.abc import Callable
from dataclasses import dataclass

from hivepipe.errors import StoppedError
from hivepipe.events.job_plan import Job
from hivepipe.home import Place, read_record
from hivepipe.jobs.origin import Origin


@dataclass(frozen=True, slots=True)
class JobContext:
    """The home, the address of its Redis, and callbacks for follow-up jobs and stops."""

    home: str
    address: str
    follow_up: Callable[[Origin, list[Job]], None]  # returns when results and work are safe
    stop_requested: Callable[[], bool] = lambda: False

    def check_stop(self) -> None:
        """Raise StoppedError if the process must end; the job will be executed again."""
        if self.stop_requested():
            raise StoppedError


def address_of(home: str) -> str:
    """Return the address of a home's Redis from its record."""
    return Place("", home, read_record(home)).socket
