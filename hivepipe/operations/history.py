"""Handlers of log lines, prompts and skill uses."""

import orjson

from hivepipe.db import history, sessions
from hivepipe.db.database import Database
from hivepipe.jobs.envelope import Envelope
from hivepipe.operations.sessions import note_event


def insert_log(db: Database, job: Envelope) -> None:
    """Log a checkpoint with its tool and file."""
    data = {
        "trigger": job.text("trigger"),
        "file_path": job.text("file_path"),
        "instance": job.instance,
    }
    message = f"Auto-checkpoint: {job.text('trigger')}"
    history.insert_log(db, job, "INFO", message, orjson.dumps(data).decode())


def record_goal(db: Database, job: Envelope) -> None:
    """Log a compaction with its task; the briefing repeats both."""
    data = {"trigger": job.text("trigger"), "task": job.text("task_id"), "instance": job.instance}
    message = f"Compaction: {job.text('trigger') or 'unknown'}"
    history.insert_log(db, job, "INFO", message, orjson.dumps(data).decode())


_NOTICES = {
    "permission_asked": ("INFO", "Permission asked"),
    "permission_denied": ("WARNING", "Permission denied"),
    "call_refused": ("WARNING", "Call refused"),
    "notification": ("INFO", "Notification"),
    "model_switched": ("INFO", "Model switched"),
    "task_created": ("INFO", "Task created"),
    "task_completed": ("INFO", "Task completed"),
    "interrupted": ("WARNING", "Interrupted"),
}


def record_notice(db: Database, job: Envelope) -> None:
    """Log a notice of Claude Code with its text."""
    kind = job.text("kind")
    level, words = _NOTICES.get(kind, ("INFO", kind))
    data = {"notice": kind, "instance": job.instance}
    message = f"{words}: {job.text('text')}"
    history.insert_log(db, job, level, message, orjson.dumps(data).decode())


def record_prompt(db: Database, job: Envelope) -> None:
    """Store the user's prompt."""
    history.insert_prompt(db, job)


def record_skill(db: Database, job: Envelope) -> None:
    """Store one use of a skill, which also shows that the session is active."""
    if sessions.require_session(db, job):
        note_event(db, job)
    history.insert_skill_use(db, job)
