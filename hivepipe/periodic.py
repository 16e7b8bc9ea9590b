"""What runs by the clock: one table, its slots, and the two messages that a turn takes.

rq-scheduler reuses one job id for ever, and exactly-once forbids that. So what it enqueues is only
a tick; executing the tick enqueues the ordinary job `<name>-<slot>`, whose id is new each time and
the same however often the tick comes.

    tick-<name>     waits in rq-scheduler's set, and in `medium` for a moment; never in `applied`
    <name>-<slot>   the job: counted, applied once, recorded in the table `slots`
"""

import re
from typing import NamedTuple

from hivepipe.envelope import Envelope, compose
from hivepipe.errors import BadEnvelopeError
from hivepipe.jobs import PRIORITIES, Job, Message, queue_of

TICK = "tick"
TICK_PRIORITY = 4
TICK_QUEUE = queue_of(TICK_PRIORITY)

BY_THE_CLOCK = "periodic"

CLEANUP = "cleanup"
CLEANUP_EVERY_CHECKPOINTS = 10

_NAME = re.compile(r"[a-z_]{1,40}")
_ID = re.compile(r"tick-[a-z_]{1,40}|([a-z_]{1,40})-([0-9]{1,19})")


class Periodic(NamedTuple):
    """One row: under which name and how often an operation runs, and what would be missed."""

    name: str
    interval_secs: int
    operation: str
    why: str


PERIODIC = (
    Periodic("reaper", 60, "reap_sessions", "sessions whose Claude Code was killed stay open"),
    Periodic("alerts", 60, "raise_alerts", "nobody is told that something is wrong"),
    Periodic("hives", 60, "check_hives", "hive workers that died or went silent look busy"),
    Periodic(CLEANUP, 600, "cleanup_agents", "rows of agents that are over pile up"),
    Periodic("idle_summaries", 600, "summarise_idle", "sessions left open have no summary"),
    Periodic("sweep", 86_400, "sweep_transcripts", "sessions whose hooks never ran are not kept"),
    Periodic("compress", 86_400, "compress_archives", "old archives stay as large as they were"),
    Periodic("prune_files", 86_400, "prune_files", "archives and logs grow without end"),
    Periodic("prune", 86_400, "prune", "the database grows without end"),
)


def slot_at(now: float, interval_secs: int, last: int | None) -> int:
    """Return the slot that a tick at this time opens: later than the last one, whatever the clock.

    It is floor(time / interval), until the clock is set back.
    """
    slot = int(now // interval_secs)
    return slot if last is None else max(slot, last + 1)


def next_due(now: float, interval_secs: int) -> int:
    """Return when the slot after the one of this time begins."""
    return (int(now // interval_secs) + 1) * interval_secs


def tick_id(name: str) -> str:
    """Return the id of a row's tick, the same for ever."""
    return f"tick-{name}"


def tick_of(row: Periodic, slot: int, due_ns: int, cause: str = "") -> Message:
    """Return the tick that opens a slot; `cause`: what brought it forward, if not the clock."""
    payload: dict[str, object] = {"name": row.name, "operation": row.operation, "slot": slot}
    if cause:
        payload["cause"] = cause
    return compose(tick_id(row.name), Job(TICK, payload, row.name), due_ns, TICK_PRIORITY)


def job_of(tick: Envelope) -> Message:
    """Return the ordinary job that a tick stands for; BadEnvelopeError: it stands for none."""
    name, operation, slot = tick.text("name"), tick.text("operation"), tick.number("slot")
    if not _NAME.fullmatch(name) or operation not in PRIORITIES or slot is None or slot < 0:
        raise BadEnvelopeError("the tick names nothing that runs by the clock")
    trigger = tick.text("cause") or BY_THE_CLOCK
    payload: dict[str, object] = {"periodic": name, "slot": slot, "trigger": trigger}
    return compose(f"{name}-{slot}", Job(operation, payload, name), tick.event_time_ns)


def is_periodic(job: Envelope) -> bool:
    """Does the job run by the clock?"""
    return bool(job.text("periodic")) and job.number("slot") is not None


def cleanup_cause(job: Envelope) -> str:
    """Return why agents are to be looked at once this job is done; empty: it is no reason.

    An instance's tenth checkpoint, or twentieth, is the clock by which the predecessor went.
    """
    if job.operation == "end_session":
        return "session_end"
    if job.operation in ("finish_agent", "fail_agent") or job.text("launch") == "completed":
        return "task_complete"
    count = job.number("checkpoint_count") or 0 if job.operation == "update_instance" else 0
    return BY_THE_CLOCK if count > 0 and count % CLEANUP_EVERY_CHECKPOINTS == 0 else ""


def name_and_slot(job_id: str) -> tuple[str, int] | None:
    """Return what the id of a job by the clock says; None for a tick's and for any other."""
    found = _ID.fullmatch(job_id)
    return (found[1], int(found[2])) if found and found[1] else None


def runs_by_the_clock(job_id: str) -> bool:
    """Is this the id of a tick, or of the job that one stands for?"""
    return _ID.fullmatch(job_id) is not None
