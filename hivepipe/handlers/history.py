"""What happened in a session: log lines, prompts, skill uses."""

import orjson

from hivepipe.envelope import Envelope
from hivepipe.handlers.sessions import note_event
from hivepipe.store import history, sessions
from hivepipe.store.database import Database


def insert_log(db: Database, job: Envelope) -> None:
    """One line per checkpoint: which tool, on which file."""
    data = {
        "trigger": job.text("trigger"),
        "file_path": job.text("file_path"),
        "instance": job.instance,
    }
    message = f"Auto-checkpoint: {job.text('trigger')}"
    history.insert_log(db, job, "INFO", message, orjson.dumps(data).decode())


def record_goal(db: Database, job: Envelope) -> None:
    """The conversation is compacted: note it, with the task; the briefing reminds of both."""
    data = {"trigger": job.text("trigger"), "task": job.text("task_id"), "instance": job.instance}
    message = f"Compaction: {job.text('trigger') or 'unknown'}"
    history.insert_log(db, job, "INFO", message, orjson.dumps(data).decode())


def record_prompt(db: Database, job: Envelope) -> None:
    """Keep what the user asked for."""
    history.insert_prompt(db, job)


def record_skill(db: Database, job: Envelope) -> None:
    """Keep one use of a skill; the session is at work."""
    if sessions.require_session(db, job):
        note_event(db, job)
    history.insert_skill_use(db, job)
