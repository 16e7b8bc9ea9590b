"""Sessions: start, activity, pause, end, checkpoints."""

import socket

from hivepipe.envelope import Envelope
from hivepipe.store import history, sessions
from hivepipe.store.applied import count_effectless
from hivepipe.store.database import Database


def start_session(db: Database, job: Envelope) -> None:
    """Create or reactivate the session, with its swarm, instance and assignment."""
    sessions.upsert_session(db, job)
    if job.instance:
        sessions.assign_instance(db, job, socket.gethostname())


def activate_session(db: Database, job: Envelope) -> None:
    """A new prompt: the session is at work again."""
    _set_state(db, job, "active")


def pause_session(db: Database, job: Envelope) -> None:
    """The turn ended; the session pauses unless work goes on in the background."""
    _set_state(db, job, "active" if job.number("background_tasks") else "paused")
    if job.text("error"):
        message = f"Turn ended by an error: {job.text('error')}"
        history.insert_log(db, job, "ERROR", message, "{}")


def end_session(db: Database, job: Envelope) -> None:
    """The session ended; the instance leaves it."""
    _set_state(db, job, "ended", job.text("reason"))
    sessions.detach_instance(db, job)


def update_checkpoint(db: Database, job: Envelope) -> None:
    """Save where the session is; an automatic checkpoint is a sign that it is at work."""
    sessions.raise_totals(db, job)
    if not sessions.save_checkpoint(db, job):
        count_effectless(db, "zero_rows", job)
    elif job.text("type") == "auto":
        sessions.set_state(db, job, "active")


def update_instance(db: Database, job: Envelope) -> None:
    """Save what the instance has done in this session."""
    if not sessions.raise_totals(db, job):
        count_effectless(db, "zero_rows", job)
    sessions.refresh_operation_count(db, job.session)


def _set_state(db: Database, job: Envelope, status: str, reason: str = "") -> None:
    if not sessions.set_state(db, job, status, reason):
        count_effectless(db, "zero_rows", job)
