"""Handlers of sessions: start, activity, pause, end, checkpoints."""

import logging
import socket

from hivepipe.db import assignments, history, sessions
from hivepipe.db.applied import count_effectless
from hivepipe.db.database import Database
from hivepipe.db.session_state import ACTIVE, PAUSED, note_end, note_signal, note_turn_end
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.sessions import (
    ActivateSession,
    Checkpoint,
    EndSession,
    LoseInstance,
    PauseSession,
    StartSession,
    UpdateCheckpoint,
    UpdateInstance,
)

logger = logging.getLogger(__name__)
# Deleted sessions of which a warning was logged; later jobs of such a session are only counted
_warned_of: set[str] = set()


def start_session(db: Database, job: Origin, args: StartSession) -> None:
    """Create or reactivate the session, with its swarm, instance and assignment."""
    if not sessions.upsert_session(db, job, args.swarm, args):
        count_effectless(db, "zero_rows", job)
    elif job.instance:
        process = assignments.Process(
            pid=args.pid,
            started=args.pid_started,
            host=args.host or socket.gethostname(),
            boot=args.boot,
            pid_space=args.pid_space,
        )
        assignments.assign_instance(db, job, process)


def activate_session(db: Database, job: Origin, args: ActivateSession) -> None:
    """Record a new prompt: the session is active again."""
    if _session_exists(db, job):
        note_event(db, job)
        sessions.describe_session(db, job.session, args.columns(), job.event_time_ns)


def pause_session(db: Database, job: Origin, args: PauseSession) -> None:
    """Record the end of a turn; the session pauses unless background work continues."""
    if not _session_exists(db, job):
        return
    note_event(db, job, ACTIVE if args.background_tasks else PAUSED)
    note_turn_end(db, job)
    sessions.describe_session(db, job.session, args.columns(), job.event_time_ns)
    if args.error or args.said:
        message = f"Turn ended by an error: {_error(args.error, args.said)}"
        history.insert_log(db, job, "ERROR", message, "{}")


def _error(kind: str, message: str) -> str:
    """Return kind and message of an error, or only the message if the kind is "unknown"."""
    if kind == "unknown" and message:
        return message
    return f"{kind}: {message}" if message else kind


def end_session(db: Database, job: Origin, args: EndSession) -> None:
    """Remove the instance from the session, which ends with its last instance.

    Raise MissingParentError if the instance has not entered the session yet.
    """
    if _session_exists(db, job):
        if job.instance:
            assignments.detach_instance(db, job)
        note_end(db, job, args.reason)
        sessions.describe_session(db, job.session, args.columns(), job.event_time_ns)


def update_checkpoint(db: Database, job: Origin, args: UpdateCheckpoint) -> None:
    """Save a checkpoint; an automatic checkpoint also shows that the session is active."""
    if not _session_exists(db, job):
        return
    if job.instance:
        _raise_totals(db, job, args)
    sessions.save_checkpoint(db, job, args.type, args.trigger)
    if args.type == "auto":
        note_event(db, job)


def update_instance(db: Database, job: Origin, args: UpdateInstance) -> None:
    if _session_exists(db, job):
        _raise_totals(db, job, args)
        sessions.refresh_operation_count(db, job.session)


def _raise_totals(db: Database, job: Origin, args: Checkpoint) -> None:
    assignments.raise_totals(db, job, args.op_count or 0, args.checkpoint_count or 0)


def note_event(db: Database, job: Origin, turn: str = ACTIVE) -> None:
    """Record an event that sets the session's `turn`; reopen an ended session, add the instance."""
    note_signal(db, job, turn)
    if job.instance:
        assignments.note_instance(db, job)


def _session_exists(db: Database, job: Origin) -> bool:
    """Tell whether the session exists; count and log the job if the session was deleted."""
    if sessions.require_session(db, job):
        return True
    count_effectless(db, "zero_rows", job)
    if job.session not in _warned_of:
        _warned_of.add(job.session)
        logger.warning("%s touched no row: session %s was deleted", job.operation, job.session)
    return False


def lose_instance(db: Database, job: Origin, _args: LoseInstance) -> None:
    """Record that the process of this job's instance has ended."""
    assignments.lose_instance(db, job)
