"""Find the job of a tick, and record an executed slot together with the job's effect.

A slot is one interval of a periodic operation; each slot is executed once.

Only the store knows the executed slots, because Redis may be lost, emptied or replaced.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hivepipe.db import slots
from hivepipe.db.database import SHORT_TIMEOUT_SECS, Database, open_database
from hivepipe.errors import LockHeldError, StoreError
from hivepipe.events.job_plan import Message
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.origin import Origin
from hivepipe.jobs.schedule_table import PERIODIC_TRIGGER, extra_job, job_of, read_tick
from hivepipe.operations.families.upkeep import RecordSlot
from hivepipe.operations.job_context import JobContext
from hivepipe.stack.lock import locked_file
from hivepipe.stack.runtime_folder import runtime_for


def job_due(db: Database | None, tick: Envelope) -> Message | None:
    """Return the job of a tick, or None if its slot was executed.

    Return the job also if the store is missing (`db` is None) or cannot be read.
    If the clock was set back, the slots of this time may be executed already. In that case the job
    is an extra run.
    """
    job = job_of(tick)
    name, operation, slot = read_tick(tick)
    try:
        if db is None or not slots.is_executed(db, name, slot):
            return job
        if slots.last_slot(db, name) == slot:
            return None
    except sqlite3.Error:  # unknown: execute it, as results are applied only once
        return job
    return extra_job(name, operation, PERIODIC_TRIGGER, tick.event_time_ns)


def record_own_slot(db: Database, job: Origin) -> None:
    """Record the slot of a periodic job in the same transaction as the job's effect."""
    if job.periodic and job.slot is not None:
        slots.record_slot(db, job.periodic, job.slot, time.time_ns())


@contextmanager
def turn(context: JobContext, job: Origin) -> Iterator[bool]:
    """Yield whether the block has to execute the job's slot.

    Yield False if the slot was executed, or if another process executes it now. A job without a
    slot yields True. Redis may lose a job that a worker executes, and the scheduler then enqueues
    the job again.
    """
    if not job.periodic or job.slot is None:
        yield True
        return
    name = job.periodic
    with ExitStack() as held:
        try:
            held.enter_context(locked_file(f"{runtime_for(context.home)}/{name}.turn", 0))
            is_due = not _is_executed(context.home, name, job.slot)
        except LockHeldError:
            is_due = False
        yield is_due
        if is_due:
            args = RecordSlot(name=name, opened=job.slot, executed_ns=time.time_ns())
            context.follow_up(job, [args.job(name)])


def _is_executed(home: str, name: str, slot: int) -> bool:
    """Tell whether the slot was executed; return False if the store cannot be used."""
    try:
        with open_database(home, SHORT_TIMEOUT_SECS) as db:
            return slots.is_executed(db, name, slot)
    except (sqlite3.Error, StoreError):
        return False


def is_long_after(home: str, job: Origin, slots_between: int) -> bool:
    """Tell whether the last executed slot is more than `slots_between` slots ago, or unknown.

    In that case the clock may have been set forward. Return False for a job without a slot, which a
    person requested. Raise StoreError without a usable database.
    """
    if job.slot is None:
        return False
    with open_database(home) as db:
        last = slots.last_slot(db, job.periodic, before=job.slot)
    return last < 0 or job.slot - last > slots_between


def record_slot(db: Database, _job: Origin, args: RecordSlot) -> None:
    """Record a slot of a periodic operation that ran outside a transaction of the store."""
    slots.record_slot(db, args.name, args.opened, args.executed_ns)
