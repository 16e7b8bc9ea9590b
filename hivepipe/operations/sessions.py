"""Handlers of sessions: start, activity, pause, end, checkpoints."""

import logging
import socket

from hivepipe.db import assignments, history, sessions
from hivepipe.db.applied import count_effectless
from hivepipe.db.database import Database
from hivepipe.db.session_state import ACTIVE, PAUSED, note_end, note_sign, note_turn_end
from hivepipe.jobs.envelope import Envelope

logger = logging.getLogger(__name__)
# Deleted sessions that were logged: one warning each, the counters have the rest
_warned_of: set[str] = set()


def start_session(db: Database, job: Envelope) -> None:
    """Create or reactivate the session, with its swarm, instance and assignment."""
    if not sessions.upsert_session(db, job):
        count_effectless(db, "zero_rows", job)
    elif job.instance:
        assignments.assign_instance(db, job, socket.gethostname())


def activate_session(db: Database, job: Envelope) -> None:
    """Record a new prompt: the session is active again."""
    if _is_there(db, job):
        note_event(db, job)
        sessions.describe_session(
            db, job.session, "objective", job.text("title"), job.event_time_ns
        )


def pause_session(db: Database, job: Envelope) -> None:
    """Record the end of a turn; the session pauses unless work continues in the background."""
    if not _is_there(db, job):
        return
    note_event(db, job, ACTIVE if job.number("background_tasks") else PAUSED)
    note_turn_end(db, job)
    sessions.describe_session(db, job.session, "effort", job.text("effort"), job.event_time_ns)
    if job.text("error") or job.text("said"):
        message = f"Turn ended by an error: {_error(job)}"
        history.insert_log(db, job, "ERROR", message, "{}")


def _error(job: Envelope) -> str:
    """Return kind and message of an error; the kind is left out if it is "unknown"."""
    kind, said = job.text("error"), job.text("said")
    if kind == "unknown" and said:
        return said
    return f"{kind}: {said}" if said else kind


def end_session(db: Database, job: Envelope) -> None:
    """Take the instance out of the session, which ends with its last instance."""
    if _is_there(db, job):
        if job.instance:
            assignments.detach_instance(db, job)
        note_end(db, job, job.text("reason"))


def update_checkpoint(db: Database, job: Envelope) -> None:
    """Save a checkpoint; an automatic one also shows that the session is active."""
    if not _is_there(db, job):
        return
    if job.instance:
        sessions.raise_totals(db, job)
    sessions.save_checkpoint(db, job)
    if job.text("type") == "auto":
        note_event(db, job)


def update_instance(db: Database, job: Envelope) -> None:
    """Save the totals of the instance in this session."""
    if _is_there(db, job):
        sessions.raise_totals(db, job)
        sessions.refresh_operation_count(db, job.session)


def note_event(db: Database, job: Envelope, turn: str = ACTIVE) -> None:
    """Record an event of a session: it opens an ended session and puts the instance inside."""
    note_sign(db, job, turn)
    if job.instance:
        assignments.note_instance(db, job)


def _is_there(db: Database, job: Envelope) -> bool:
    """Tell whether the session exists; for a deleted one, count and log the job as a no-op."""
    if sessions.require_session(db, job):
        return True
    count_effectless(db, "zero_rows", job)
    if job.session not in _warned_of:
        _warned_of.add(job.session)
        logger.warning("%s touched no row: session %s was deleted", job.operation, job.session)
    return False


def lose_instance(db: Database, job: Envelope) -> None:
    """Record that the process of an instance is gone."""
    assignments.lose_instance(db, job)
