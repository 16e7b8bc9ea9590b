"""Log lines, prompts and skill uses of sessions. These rows are kept when a session is deleted."""

from hivepipe.db.database import Database
from hivepipe.jobs.origin import Origin
from hivepipe.times import stored_time
from hivepipe.transcripts.lines import CAP_NAME


def insert_log(db: Database, job: Origin, level: str, message: str, data: str) -> None:
    """Add one line to the session's log."""
    _insert(db, job, "session_logs", {"log_level": level, "message": message, "data": data})


def has_log_near(db: Database, job: Origin, start: str, span_ns: int) -> bool:
    """Tell whether a line that begins with `start` is within `span_ns` of the job's event."""
    sql = """
        SELECT 1 FROM session_logs
        WHERE session_id = :session AND created_at BETWEEN :first AND :last
          AND substr(message, 1, :size) = :start
    """
    first, last = (stored_time(job.event_time_ns + step) for step in (-span_ns, span_ns))
    limits = {"session": job.session, "first": first, "last": last}
    return db.row(sql, {**limits, "start": start, "size": len(start)}) is not None


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
