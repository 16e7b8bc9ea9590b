"""Log lines, prompts and skill uses of sessions. These rows are kept when a session is deleted."""

from hivepipe.db.database import Database
from hivepipe.jobs.origin import Origin
from hivepipe.transcripts.lines import CAP_NAME


def insert_log(db: Database, job: Origin, level: str, message: str, data: str) -> None:
    """Add one line to the session's log."""
    _insert(db, job, "session_logs", {"log_level": level, "message": message, "data": data})


def insert_prompt(db: Database, job: Origin, prompt_id: str, prompt: str) -> None:
    _insert(db, job, "prompts", {"prompt_id": prompt_id or None, "prompt": prompt})


def delete_prompt(db: Database, session: str, prompt_id: str, start: str) -> None:
    """Delete a prompt that Claude Code itself sent; the prompt's event does not tell who sent it.

    A text that the user types during the same turn has the same id. So the first CAP_NAME
    characters must be equal, too.
    """
    sql = f"""
        DELETE FROM prompts WHERE session_id = :session AND prompt_id = :prompt
          AND substr(prompt, 1, {CAP_NAME}) = :start
    """
    db.execute(sql, {"session": session, "prompt": prompt_id, "start": start})


def insert_skill_use(db: Database, job: Origin, use: dict[str, object]) -> None:
    """Insert one use of a skill or a typed command. `kind` is tool, command or own_command."""
    _insert(db, job, "skill_uses", use)


def _insert(db: Database, job: Origin, table: str, row: dict[str, object]) -> None:
    """Insert a row of the job's session, once per job."""
    origin = {"session_id": job.session, "created_at": job.time, "job_id": job.id}
    db.insert(table, {**origin, **row})
