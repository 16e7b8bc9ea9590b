"""What may take longer than 100 ms: operation -> (queue, handler), and how such a job is executed.

The writer never executes these: it hands them on to `slow` or `llm`, where each has a worker.
They work on files and other services, idempotently; what they have for the store they hand back
as jobs of their own, and read it where they must.
"""

from collections.abc import Callable
from typing import NamedTuple

from hivepipe.envelope import Envelope, follow_ups, read_envelope
from hivepipe.errors import UnknownOperationError
from hivepipe.handlers.archive import archive_transcript
from hivepipe.handlers.registry import execute
from hivepipe.handlers.sweep import compress_archives, sweep_transcripts
from hivepipe.handlers.workplace import Workplace
from hivepipe.jobs import Job
from hivepipe.queues.names import SLOW
from hivepipe.store.database import Database


class Slow(NamedTuple):
    """One slow operation: which queue it waits in, and what executes it."""

    queue: str
    handler: Callable[[Workplace, Envelope], None]


SLOW_OPERATIONS: dict[str, Slow] = {
    "archive_transcript": Slow(SLOW, archive_transcript),
    "sweep_transcripts": Slow(SLOW, sweep_transcripts),
    "compress_archives": Slow(SLOW, compress_archives),
}


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
