"""Cleanup of agents: soft deletes with their reasons, and the result of each run."""

from collections import Counter
from datetime import datetime

from hivepipe.db.database import Database, Row
from hivepipe.jobs.agent_expiry import Verdict, judge


def verdicts(db: Database, now: datetime) -> list[tuple[str, Verdict]]:
    """Return (agent, verdict) for each agent that is not deleted."""
    sql = """
        SELECT agents.id, agents.status, agents.metadata, agents.created_at, agents.session_id,
          agents.began_at, sessions.status AS session_status
        FROM agents LEFT JOIN sessions ON sessions.id = agents.session_id
        WHERE agents.deleted_at IS NULL ORDER BY agents.created_at, agents.id
    """
    return [(row["id"], judge(dict(row), now)) for row in db.each(sql)]


def delete_agents(
    db: Database, job_id: str, trigger: str, time: str, judged: list[tuple[str, Verdict]]
) -> None:
    """Soft-delete the agents that `judged` calls outdated; record a cleanup if there are any.

    Status, outcome and error stay. An agent without an outcome gets the outcome `lost`.
    """
    gone = [(agent, verdict.reason) for agent, verdict in judged if verdict.is_outdated]
    if not gone:
        return
    sql = """
        UPDATE agents SET deleted_at = :time, deleted_reason = :reason, deleted_by = :job,
          outcome = COALESCE(outcome, 'lost')
        WHERE id = :id AND deleted_at IS NULL
    """
    for agent, reason in gone:
        db.execute(sql, {"id": agent, "reason": reason, "time": time, "job": job_id})
    counts = Counter(verdict.reason for _, verdict in judged)
    run = {reason: counts[reason] for reason in ("expired", "completed", "orphaned")}
    run["kept"] = len(judged) - len(gone)
    db.insert("cleanups", {"job_id": job_id, "cause": trigger, "created_at": time, **run})


def runs_after(db: Database, run: int, most: int) -> list[tuple[Row, list[Row]]]:
    """Return up to `most` cleanups with ids above `run`, by id, each with the agents it deleted."""
    runs = db.rows(
        "SELECT * FROM cleanups WHERE id > :run ORDER BY id LIMIT :most", {"run": run, "most": most}
    )
    agents = """
        SELECT id, session_id, deleted_reason FROM agents
        WHERE deleted_by = :job ORDER BY created_at, id
    """
    return [(row, db.rows(agents, {"job": row["job_id"]})) for row in runs]
