"""Handlers of log lines, prompts and skill uses."""

import orjson

from hivepipe.db import history, sessions
from hivepipe.db.database import Database
from hivepipe.events.claude_code import is_machine_made
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.history import RecordGoal, RecordNotice, RecordPrompt, RecordSkill
from hivepipe.operations.families.sessions import InsertLog
from hivepipe.operations.sessions import note_event


def insert_log(db: Database, job: Origin, args: InsertLog) -> None:
    data = {"trigger": args.trigger, "file_path": args.file_path}
    _log(db, job, "INFO", f"Auto-checkpoint: {args.trigger}", data)


def record_goal(db: Database, job: Origin, args: RecordGoal) -> None:
    """Log a compaction with its task; the briefing shows both."""
    data = {"trigger": args.trigger, "task": args.task_id}
    _log(db, job, "INFO", f"Compaction: {args.trigger or 'unknown'}", data)


INTERRUPTED = "interrupted"
BY_A_PERSON = "by a person, with Esc or No"
# Both the status of Claude Code's process and its transcript may report the end of a turn.
SAME_END_NS = 5 * 10**9
_NOTICES = {
    "permission_asked": ("INFO", "Permission asked"),
    "permission_denied": ("WARNING", "Permission denied"),
    "call_refused": ("WARNING", "Call refused"),
    "notification": ("INFO", "Notification"),
    "model_switched": ("INFO", "Model switched"),
    "task_created": ("INFO", "Task created"),
    "task_completed": ("INFO", "Task completed"),
    INTERRUPTED: ("WARNING", "Interrupted"),
}


def record_notice(db: Database, job: Origin, args: RecordNotice) -> None:
    """Log a notice of Claude Code with its text, an interruption once (SAME_END_NS)."""
    level, words = _NOTICES.get(args.kind, ("INFO", args.kind))
    if args.kind == INTERRUPTED and history.has_log_near(db, job, words, SAME_END_NS):
        return
    _log(db, job, level, f"{words}: {args.text}", {"notice": args.kind})


def _log(db: Database, job: Origin, level: str, message: str, data: dict[str, str]) -> None:
    text = orjson.dumps({**data, "instance": job.instance}).decode()
    history.insert_log(db, job, level, message, text)


def record_prompt(db: Database, job: Origin, args: RecordPrompt) -> None:
    """Store the user's prompt; skip prompts by Claude Code, which hooks of 1.0.0 also send."""
    if is_machine_made(args.prompt):
        return
    history.insert_prompt(db, job, args.prompt_id, args.prompt)


def record_skill(db: Database, job: Origin, args: RecordSkill) -> None:
    """Store one use of a skill, which also shows that the session is active.

    Raise MissingParentError if the session is not stored yet.
    """
    if sessions.require_session(db, job):
        note_event(db, job)
    use: dict[str, object] = {"skill": args.skill, "kind": args.source, "arguments": args.arguments}
    use |= {"success": args.success, "prompt_id": args.prompt_id or None}
    history.insert_skill_use(db, job, use)
