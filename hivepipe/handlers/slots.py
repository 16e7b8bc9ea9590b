"""Executed slots: what runs by the clock is recorded where its effect is."""

import time

from hivepipe.envelope import Envelope
from hivepipe.errors import BadEnvelopeError
from hivepipe.jobs import Job
from hivepipe.periodic import is_periodic
from hivepipe.store import slots
from hivepipe.store.database import Database


def record_own_slot(db: Database, job: Envelope) -> None:
    """Record that a job by the clock was executed, in the transaction of its effect."""
    if is_periodic(job):
        slots.record_slot(db, job.text("periodic"), job.payload["slot"], time.time_ns())


def slot_jobs(job: Envelope) -> list[Job]:
    """Return what a job by the clock hands back when it is done; nothing for any other job."""
    if not is_periodic(job):
        return []
    name = job.text("periodic")
    payload: dict[str, object] = {
        "name": name,
        "opened": job.payload["slot"],
        "executed_ns": time.time_ns(),
    }
    return [Job("record_slot", payload, name)]


def record_slot(db: Database, job: Envelope) -> None:
    """Record a slot that was executed where nothing is written."""
    slot, executed_ns = job.number("opened"), job.number("executed_ns")
    if slot is None or executed_ns is None:
        raise BadEnvelopeError("no slot")
    slots.record_slot(db, job.text("name"), slot, executed_ns)
