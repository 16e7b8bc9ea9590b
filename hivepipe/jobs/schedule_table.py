"""Periodic jobs: the table, its time slots, and the two messages per slot.

rq-scheduler reuses one job id, which does not allow exactly-once execution. So rq-scheduler
enqueues only a tick. The execution of the tick enqueues the job `<name>-<slot>`. This id is new for
each slot, and the same for every duplicate of the tick.

    tick-<name>     waits in rq-scheduler's set, then briefly in `medium`; never in `applied`
    <name>-<slot>   the job: counted, applied once, recorded in the table `slots`
    <name>-at-<ns>  an extra run without a slot: it was triggered, or the clock was set back
"""

import re
from typing import NamedTuple

from hivepipe.errors import BadEnvelopeError
from hivepipe.events.job_plan import PRIORITIES, Job, Message, queue_of
from hivepipe.jobs.args import ARGS
from hivepipe.jobs.envelope import Envelope, compose

TICK = "tick"
TICK_PRIORITY = 4
TICK_QUEUE = queue_of(TICK_PRIORITY)

PERIODIC_TRIGGER = "periodic"

CLEANUP = "cleanup"
CLEANUP_EVERY_CHECKPOINTS = 10

_NAME = re.compile(r"[a-z_]{1,40}")
_ID = re.compile(r"tick-[a-z_]{1,40}|([a-z_]{1,40}(?:-at)?)-([0-9]{1,19})")


class Periodic(NamedTuple):
    """One periodic job: name, interval and operation. `why` says what happens without it.

    `fallback_for` names a worker that does this work itself. The scheduler runs the job only while
    that worker does not run.
    """

    name: str
    interval_secs: int
    operation: str
    why: str
    fallback_for: str = ""


class Tick(NamedTuple):
    """The content of a tick: a periodic job and one of its slots."""

    name: str
    operation: str
    slot: int


def slot_at(now: float, interval_secs: int) -> int:
    """Return the slot of a time: the number of whole intervals since 1970."""
    return int(now // interval_secs)


def next_due(now: float, interval_secs: int) -> int:
    """Return the start of the next slot, in seconds since 1970."""
    return (slot_at(now, interval_secs) + 1) * interval_secs


def tick_id(name: str) -> str:
    """Return the id of a periodic job's tick, which is the same for all slots."""
    return f"tick-{name}"


def tick_of(row: Periodic, slot: int, due_ns: int) -> Message:
    payload: dict[str, object] = {"name": row.name, "operation": row.operation, "slot": slot}
    return compose(tick_id(row.name), Job(TICK, payload, row.name), due_ns, TICK_PRIORITY)


def read_tick(tick: Envelope) -> Tick:
    """Return the content of a tick. Raise BadEnvelopeError if the tick is not valid."""
    name, operation, slot = (tick.payload.get(key) for key in Tick._fields)
    is_known = operation in PRIORITIES or operation in ARGS
    if not (isinstance(name, str) and _NAME.fullmatch(name) and is_known):
        raise BadEnvelopeError("the tick names no periodic operation")
    if type(slot) is not int or slot < 0:
        raise BadEnvelopeError("the tick has no slot")
    return Tick(name, str(operation), slot)


def job_of(tick: Envelope) -> Message:
    """Return the message of a tick's job. Raise BadEnvelopeError if the tick is not valid."""
    name, operation, slot = read_tick(tick)
    payload: dict[str, object] = {"periodic": name, "slot": slot, "trigger": PERIODIC_TRIGGER}
    return compose(f"{name}-{slot}", Job(operation, payload, name), tick.event_time_ns)


def extra_job(name: str, operation: str, trigger: str, time_ns: int) -> Message:
    """Return the message of the job of an extra run, which has no slot."""
    payload: dict[str, object] = {"periodic": name, "trigger": trigger}
    return compose(f"{name}-at-{time_ns}", Job(operation, payload, name), time_ns)


def name_and_slot(job_id: str) -> tuple[str, int] | None:
    """Return name and slot from a periodic job's id, or None for a tick and any other id.

    For an extra run, the name is `<name>-at` and the slot its time in ns.
    """
    found = _ID.fullmatch(job_id)
    return (found[1], int(found[2])) if found and found[1] else None


def is_periodic_id(job_id: str) -> bool:
    """Tell whether this is the id of a tick or of a periodic job."""
    return _ID.fullmatch(job_id) is not None
