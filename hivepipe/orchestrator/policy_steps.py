"""Execute the steps of respawn_policy, for the periodic check and for `hive monitor --respawn`."""

import os
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime

from hivepipe.db import hive as store
from hivepipe.errors import HiveError, StoreError
from hivepipe.orchestrator import prompts, respawn_policy
from hivepipe.orchestrator.costs import MICRO
from hivepipe.orchestrator.orchestrator import Orchestrator
from hivepipe.orchestrator.records import opened
from hivepipe.orchestrator.respawn_policy import Policy
from hivepipe.orchestrator.run import Run
from hivepipe.orchestrator.status import write_status
from hivepipe.orchestrator.worker import Worker
from hivepipe.orchestrator.worker_state import CheckedWorker, ending

_PAID = ("ask", "park", "respawn")
_UNKNOWN_USD = 1  # assumed cost of a run if no run of the worker has a known cost


def take_next_step(orchestrator: Orchestrator, checked: CheckedWorker, policy: Policy) -> str:
    """Take the next step for a worker and return its name, or "" if none is due.

    Raise HiveError if the step failed. A failed step is not retried automatically.
    """
    worker, run = checked.worker, checked.run
    name = respawn_policy.next_step(
        checked, respawn_policy.steps_taken(worker), policy, time.time_ns()
    )
    if name == "respawn" and orchestrator.has_successor(worker):
        return ""
    return take_step(orchestrator, checked, policy, name) if name and run else ""


def take_step(orchestrator: Orchestrator, checked: CheckedWorker, policy: Policy, name: str) -> str:
    """Record a step, take the step, and return its name.

    If a step would exceed the daily cost limit, record the step `limit` instead, once per run.
    Return "" if the step was recorded before; the step `respawn` is taken nevertheless. Raise
    HiveError if the step fails, or the cost of today is unknown.
    """
    worker, run = checked.worker, checked.run
    assert run is not None
    if name in _PAID and _spent_today(orchestrator.hive.home) >= policy.limit_usd:
        name = "limit"
    if not respawn_policy.record_step(worker, name, run.number) and name != "respawn":
        return ""
    if name == "stop":
        _signal(checked, signal.SIGTERM)
    elif name == "kill":
        _signal(checked, signal.SIGKILL)
    elif name == "ask":
        orchestrator.resume(worker, prompts.ASK, "ask", run.number)
    elif name == "give up":
        _give_up(worker, run)
    elif name == "park":
        orchestrator.park(worker, run.number)
    elif name == "respawn":
        orchestrator.respawn(worker)
    orchestrator.record([worker])
    return name


def _signal(checked: CheckedWorker, number: signal.Signals) -> None:
    """Signal the process group of a run if its leader is still the recorded process."""
    run = checked.run
    if run and run.pid > 1 and run.process_lives():
        with suppress(ProcessLookupError):
            os.killpg(run.pid, number)


def _give_up(worker: Worker, run: Run) -> None:
    """Set the worker's status in status.json to `error`; keep the other fields."""
    before = dict(worker.status().fields)
    fields = {
        **before,
        "status": "error",
        "error": f"no sign of life; asked, it wrote no status.json, and {ending(run)}",
        "attempted": f"resumed with: {prompts.ASK}",
        "suggestion": "look at transcript.jsonl and stderr.log; spawn a fresh one",
        "by": respawn_policy.BY_US,
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        write_status(worker.status_file, fields)
    except HiveError:  # the previous fields have wrong types: write without them
        kept = {name: fields[name] for name in fields if name not in before or name == "by"}
        write_status(worker.status_file, {**kept, "status": "error", "error": fields["error"]})


def _spent_today(home: str) -> float:
    """Return the cost in USD of today's (UTC) ask, park and respawn runs, or raise HiveError."""
    try:
        with opened(home) as db:
            midnight = f"{datetime.now(UTC):%Y-%m-%d}T00:00:00.000Z"
            unknown = int(_UNKNOWN_USD * MICRO)
            return store.spent_since(db, midnight, unknown) / float(MICRO)
    except StoreError as error:
        raise HiveError(f"the spending of today is unknown: {error}") from None


def park_and_respawn(orchestrator: Orchestrator, checked: CheckedWorker, policy: Policy) -> str:
    """Park a worker whose context is full, then respawn it. Return the step taken, or ""."""
    worker, run = checked.worker, checked.run
    if checked.state != "context_full" or checked.lives is not False or run is None:
        return ""
    if not respawn_policy.is_parked(worker, run):
        return take_step(orchestrator, checked, policy, "park")
    if worker.card().respawns >= policy.respawns or orchestrator.has_successor(worker):
        return ""
    return take_step(orchestrator, checked, policy, "respawn")
