"""Agents that a session spawned: four events, in any order, any of them missing."""

from hivepipe.envelope import Envelope
from hivepipe.store import agents
from hivepipe.store.database import Database

DEFAULT_TYPE = "general-purpose"
DEFAULT_MODEL = "default"
DEFAULT_NAME = "task"


def insert_agent(db: Database, job: Envelope) -> None:
    """The Agent tool returned: finished, or launched in the background."""
    agents.record_sign(
        db, job, _call(job, "completed" if job.text("launch") == "completed" else "spawned")
    )


def fail_agent(db: Database, job: Envelope) -> None:
    """The Agent tool failed."""
    agents.record_sign(db, job, _call(job, "failed"))


def start_agent(db: Database, job: Envelope) -> None:
    """Claude Code spawned or resumed the agent."""
    agents.record_sign(db, job, _life(job, "spawned"))


def finish_agent(db: Database, job: Envelope) -> None:
    """The agent finished."""
    agents.record_sign(db, job, _life(job, "completed"))


def _call(job: Envelope, status: str) -> agents.Sign:
    return agents.Sign(
        agent_id=job.text("agent_id"),
        status=status,
        type=job.text("type") or DEFAULT_TYPE,
        name=job.text("description") or DEFAULT_NAME,
        model=job.text("model") or DEFAULT_MODEL,
        tool_use_id=job.text("tool_use_id"),
        tokens=job.number("tokens"),
        duration_ms=job.number("duration_ms"),
    )


def _life(job: Envelope, status: str) -> agents.Sign:
    return agents.Sign(
        agent_id=job.text("agent_id"), status=status, type=job.text("type"), type_is_claudes=True
    )
