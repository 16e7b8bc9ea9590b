"""Operations that run outside the writer's transactions: operation -> (queue, handler).

The writer moves what may take longer than 100 ms to `slow` or `llm`, each of which has a worker.
Short work that calls the system or Redis (queue HERE) runs in the writer, outside its transactions.
All handlers are idempotent; they hand back what is to be written to the store as jobs.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from hivepipe.db.database import Database, opened
from hivepipe.db.location import database_path
from hivepipe.errors import UnknownOperationError
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import Envelope, follow_ups, read_envelope
from hivepipe.operations.archive import archive_transcript
from hivepipe.operations.lazy_handler import Deferred, load_all
from hivepipe.operations.registry import HANDLERS, execute
from hivepipe.operations.slots import turn
from hivepipe.operations.workplace import Workplace, address_of
from hivepipe.queue.names import LLM, SLOW

HERE = ""  # the writer executes it


class Slow(NamedTuple):
    """One such operation: its queue and its handler."""

    queue: str
    handler: Callable[[Workplace, Envelope], None]


SLOW_OPERATIONS: dict[str, Slow] = {
    "archive_transcript": Slow(SLOW, archive_transcript),
    "index_memory": Slow(SLOW, Deferred("memory.index_memory")),
    "sync_profile": Slow(SLOW, Deferred("process_end.sync_profile")),
    "conclude_session": Slow(HERE, Deferred("session_end.conclude_session")),
    "finish_process": Slow(SLOW, Deferred("process_end.finish_process")),
    "sweep_transcripts": Slow(SLOW, Deferred("sweep.sweep_transcripts")),
    "compress_archives": Slow(SLOW, Deferred("sweep.compress_archives")),
    "cleanup_agents": Slow(HERE, Deferred("cleanup.cleanup_agents")),
    "log_cleanups": Slow(SLOW, Deferred("cleanup.log_cleanups")),
    "prune": Slow(SLOW, Deferred("prune.prune")),
    "check_hives": Slow(SLOW, Deferred("hive.check_hives")),
    "reap_sessions": Slow(HERE, Deferred("reaper.reap_sessions")),
    "raise_alerts": Slow(HERE, Deferred("alerts.raise_alerts")),
    "send_alert": Slow(SLOW, Deferred("alerts.send_alert")),
    "prune_files": Slow(SLOW, Deferred("prune_files.prune_files")),
    "summarise_session": Slow(LLM, Deferred("summaries.summarise_session")),
    "summarise_idle": Slow(HERE, Deferred("summaries.summarise_idle")),
    "promote_retries": Slow(HERE, Deferred("upkeep.promote_retries")),
    "drain_spool": Slow(HERE, Deferred("upkeep.drain_spool")),
    "record_activity": Slow(HERE, Deferred("upkeep.record_activity")),
    "bring_back_strays": Slow(HERE, Deferred("upkeep.bring_back_strays")),
    "write_briefings": Slow(HERE, Deferred("upkeep.write_briefings")),
    "export_skills": Slow(SLOW, Deferred("upkeep.export_skills")),
}


def load_writes() -> None:
    """Import every handler that writes to the store, for processes that outlive an upgrade."""
    load_all(HANDLERS.values())


def load_slow(*queues: str) -> None:
    """Import the handlers of these queues only, to save memory."""
    load_all(slow.handler for slow in SLOW_OPERATIONS.values() if slow.queue in queues)


def execute_slow(workplace: Workplace, job: Envelope) -> None:
    """Execute one such job; exceptions pass to the caller."""
    slow = SLOW_OPERATIONS.get(job.operation)
    if slow is None:
        raise UnknownOperationError(f"no handler for operation {job.operation!r}")
    with turn(workplace, job) as is_ours:
        if is_ours:
            slow.handler(workplace, job)


def execute_at_once(home: str, db: Database, parent: Envelope, jobs: list[Job]) -> None:
    """Execute the jobs that a slow handler hands back, where no writer does it.

    All writes go into one transaction; then slow operations follow.
    """
    envelopes = [read_envelope(message.envelope) for message in follow_ups(parent, jobs)]
    with db.transaction():
        for job in envelopes:
            if job.operation not in SLOW_OPERATIONS:
                execute(db, job)
    workplace = Workplace(home, address_of(home), partial(execute_at_once, home, db))
    for job in envelopes:
        if job.operation in SLOW_OPERATIONS:
            execute_slow(workplace, job)


@contextmanager
def at_once(home: str) -> Iterator[Workplace]:
    """Give a workplace without workers: jobs are executed when they are handed back. StoreError."""
    with opened(database_path(home)) as db:
        yield Workplace(home, address_of(home), partial(execute_at_once, home, db))


def asked(operation: str) -> Envelope:
    """Return a job that was not enqueued; jobs that it hands back derive their ids from its id."""
    return Envelope(
        id=uuid.uuid4().hex,
        operation=operation,
        event_time_ns=time.time_ns(),
        priority=8,
        payload={},
    )
