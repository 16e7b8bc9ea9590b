"""Log lines, prompts and skill uses of sessions. They are kept when a session is deleted."""

from typing import NamedTuple

from hivepipe.db.database import Database
from hivepipe.jobs.origin import Origin


def insert_log(db: Database, job: Origin, level: str, message: str, data: str) -> None:
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


def insert_prompt(db: Database, job: Origin, prompt_id: str, prompt: str) -> None:
    """Insert a prompt of the user."""
    sql = """
        INSERT INTO prompts (session_id, prompt_id, prompt, created_at, job_id)
        VALUES (:session, :prompt_id, :prompt, :time, :job)
        ON CONFLICT (job_id) DO NOTHING
    """
    parameters = {
        "session": job.session,
        "prompt_id": prompt_id or None,
        "prompt": prompt,
        "time": job.time,
        "job": job.id,
    }
    db.execute(sql, parameters)


class SkillUse(NamedTuple):
    """One use of a skill; `kind` is tool or command."""

    skill: str
    kind: str
    arguments: str
    success: bool
    prompt_id: str


def insert_skill_use(db: Database, job: Origin, use: SkillUse) -> None:
    """Insert one use of a skill or of a typed command."""
    sql = """
        INSERT INTO skill_uses
          (session_id, skill, kind, arguments, success, created_at, job_id, prompt_id)
        VALUES (:session, :skill, :kind, :arguments, :success, :time, :job, :prompt_id)
        ON CONFLICT (job_id) DO NOTHING
    """
    parameters = {
        "session": job.session,
        **use._asdict(),
        "prompt_id": use.prompt_id or None,
        "time": job.time,
        "job": job.id,
    }
    db.execute(sql, parameters)
