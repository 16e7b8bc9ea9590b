"""Run a process of workers/ that records every step: launch_marked.py <script> <folder>."""

import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hivepipe.archive import append
from hivepipe.db import migrations
from hivepipe.db.database import Database
from hivepipe.db.spending import Spending
from hivepipe.jobs.schedule_table import Periodic
from hivepipe.operations import follow_up, summariser
from hivepipe.queue import housekeeping, ticks
from hivepipe.queue.claims import Claims
from hivepipe.stack import wake_up
from hivepipe.summaries import call
from hivepipe.worker import scheduler, slow_worker, writer
from hivepipe.worker.claiming_worker import ClaimingWorker

SCRIPT, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.append(str(Path(__file__).resolve().parents[3]))

from tests.faults.injections.marks import Marks, use_clock  # noqa: E402  the root is on the path only now

TICKS = [Periodic("quick", 1, "raise_alerts", "a test")]
ROLE = SCRIPT.stem
marks = Marks(FOLDER)
use_clock(FOLDER, ROLE)
at_commit = {"": False}  # otherwise the transaction stores heartbeats


def here(step: str) -> None:
    marks.here(f"{ROLE}: {step}" if step else "")


def marked_after(owner: Any, name: str, step: str) -> None:
    """Record a step after each call that had an effect."""
    before: Callable[..., Any] = getattr(owner, name)

    def and_mark(*arguments: Any, **keywords: Any) -> Any:
        found = before(*arguments, **keywords)
        if found is not False and getattr(found, "jobs", True) and arguments[1:] != ([],):
            here(step)
        return found

    setattr(owner, name, and_mark)


def marked_rest(self: ClaimingWorker, secs: float | None) -> None:
    here("")
    rest(self, secs)


@contextmanager
def marked_transaction(self: Database) -> Iterator[None]:
    with transaction(self):
        yield
        if at_commit[""]:
            here("before the commit")


def marked_commit(*arguments: Any) -> Any:
    at_commit[""] = True
    outcome = commit_batch(*arguments)
    at_commit[""] = False
    here("committed")
    return outcome


rest, transaction, commit_batch = ClaimingWorker._rest, Database.transaction, writer.commit_batch
ClaimingWorker._rest = marked_rest  # type: ignore[method-assign]
Database.transaction = marked_transaction  # type: ignore[method-assign]
writer.commit_batch = marked_commit
marked_after(housekeeping, "enqueue", "spool file in Redis")
marked_after(Claims, "claim", "claimed")
marked_after(Claims, "move", "handed on")
marked_after(Claims, "acknowledge", "acknowledged")
marked_after(append.os, "fsync", "lines archived")
marked_after(migrations, "_back_up", "backup made")
marked_after(slow_worker, "execute_slow", "executed")
marked_after(follow_up, "apply_results", "results stored")
marked_after(follow_up, "enqueue_work", "work enqueued")
if ROLE == "scheduler":
    scheduler.LOCK_SECS, scheduler.LONGEST_WAIT_SECS = 1, 0.2
    scheduler.TickScheduler.__init__.__defaults__ = (TICKS, "")  # type: ignore[attr-defined]
    marked_after(scheduler.TickScheduler, "acquire_lock", "lock held")
    marked_after(scheduler.TickScheduler, "_reconcile", "begins to act")
    marked_after(ticks, "fire", "tick fired")
if ROLE == "llm":
    marked_after(Spending, "reserve", "reserved")
    # Its environment is the last thing to get before the call.
    marked_after(call, "inherited", "begins to ask")
    marked_after(summariser, "ask", "answered")
    marked_after(Spending, "settle", "settled")
if ROLE == "forwarder":
    marked_after(wake_up.WakeUp, "wait", "rung, or a second later")
runpy.run_path(str(SCRIPT), run_name="__main__")
