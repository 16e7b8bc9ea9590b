"""What may take longer than 100 ms: operation -> (queue, handler), and how such a job is executed.

The writer never executes these: it hands them on to `slow` or `llm`, where each has a worker.
They work on files and other services, idempotently; what they have for the store they hand back
as jobs of their own, and read it where they must.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from hivepipe.envelope import Envelope, follow_ups, read_envelope
from hivepipe.errors import StoppedError, UnknownOperationError
from hivepipe.handlers.registry import execute
from hivepipe.jobs import Job
from hivepipe.store.database import Database

LONGEST_SETTLE_SECS = 600.0


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a slow handler works, and whom it can ask."""

    home: str
    hand_back: Callable[[Envelope, list[Job]], None]  # returns when the jobs are safe
    stop_requested: Callable[[], bool] = lambda: False

    def check_stop(self) -> None:
        """Raise StoppedError when the process has been told to end; the job comes again."""
        if self.stop_requested():
            raise StoppedError


class Slow(NamedTuple):
    """One slow operation: which queue it waits in, and what executes it."""

    queue: str
    handler: Callable[[Workplace, Envelope], None]


SLOW_OPERATIONS: dict[str, Slow] = {}


def execute_slow(workplace: Workplace, job: Envelope) -> None:
    """Execute one slow job; whatever it raises is the caller's to judge."""
    slow = SLOW_OPERATIONS.get(job.operation)
    if slow is None:
        raise UnknownOperationError(f"no handler for operation {job.operation!r}")
    slow.handler(workplace, job)


def execute_at_once(db: Database, parent: Envelope, jobs: list[Job]) -> None:
    """Execute what a slow handler hands back where there is no writer to do it: all or nothing."""
    with db.transaction():
        for message in follow_ups(parent, jobs):
            execute(db, read_envelope(message.envelope))


def settle_secs(job: Envelope) -> float:
    """Return how long the job wants to wait before it is executed: what it reads still grows."""
    wanted = job.payload.get("settle_s")
    if isinstance(wanted, int | float) and math.isfinite(wanted):
        return min(max(float(wanted), 0.0), LONGEST_SETTLE_SECS)
    return 0.0
