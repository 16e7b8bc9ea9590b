"""Log lines, prompts and skill uses of sessions. They are kept when a session is deleted."""

from hivepipe.db.database import Database
from hivepipe.jobs.envelope import Envelope


def insert_log(db: Database, job: Envelope, level: str, message: str, data: str) -> None:
    """Add one line to the session's log."""
    sql = """
        INSERT INTO session_logs (session_id, log_level, message, data, created_at, job_id)
        VALUES (:session, :level, :message, :data, :time, :job)
        ON CONFLICT (job_id) DO NOTHING
    """
    parameters = {
        "session": job.session,
        "level": level,
        "message": message,
        "data": data,
        "time": job.time,
        "job": job.id,
    }
    db.execute(sql, parameters)


def insert_prompt(db: Database, job: Envelope) -> None:
    """Insert a prompt of the user."""
    sql = """
        INSERT INTO prompts (session_id, prompt_id, prompt, created_at, job_id)
        VALUES (:session, :prompt_id, :prompt, :time, :job)
        ON CONFLICT (job_id) DO NOTHING
    """
    parameters = {
        "session": job.session,
        "prompt_id": job.text("prompt_id") or None,
        "prompt": job.text("prompt"),
        "time": job.time,
        "job": job.id,
    }
    db.execute(sql, parameters)


def insert_skill_use(db: Database, job: Envelope) -> None:
    """Insert one use of a skill or of a typed command."""
    sql = """
        INSERT INTO skill_uses
          (session_id, skill, kind, arguments, success, created_at, job_id, prompt_id)
        VALUES (:session, :skill, :kind, :arguments, :success, :time, :job, :prompt_id)
        ON CONFLICT (job_id) DO NOTHING
    """
    parameters = {
        "session": job.session,
        "skill": job.text("skill"),
        "kind": job.text("source"),
        "arguments": job.text("arguments"),
        "success": job.payload.get("success") is True,
        "time": job.time,
        "job": job.id,
        "prompt_id": job.text("prompt_id") or None,
    }
    db.execute(sql, parameters)
