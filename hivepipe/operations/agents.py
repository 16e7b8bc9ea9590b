"""Handlers of the four events of an agent, which may arrive in any order or not at all."""

from dataclasses import replace

from hivepipe.db import agents
from hivepipe.db.database import Database
from hivepipe.errors import BadEnvelopeError
from hivepipe.events.claude_code import valid_id
from hivepipe.jobs.envelope import Envelope
from hivepipe.operations.sessions import note_event

DEFAULT_TYPE = "general-purpose"
DEFAULT_MODEL = "default"
DEFAULT_NAME = "task"


def insert_agent(db: Database, job: Envelope) -> None:
    """Record that the Agent tool returned: the agent has finished, or was launched in the
    background.
    """
    _record(db, job, _call(job, "completed" if job.text("launch") == "completed" else "spawned"))


def fail_agent(db: Database, job: Envelope) -> None:
    """Record that the Agent tool failed, or that the user interrupted it."""
    interrupted = "interrupted by the user" if job.payload.get("is_interrupt") is True else ""
    _record(db, job, replace(_call(job, "failed"), error=job.text("error") or interrupted))


def start_agent(db: Database, job: Envelope) -> None:
    """Record that Claude Code spawned or resumed the agent, or that an event came from it."""
    _record(db, job, replace(_life(job, "running"), began=True))


def finish_agent(db: Database, job: Envelope) -> None:
    """Record that the agent finished or failed."""
    status = "failed" if job.payload.get("failed") is True else "completed"
    _record(db, job, replace(_life(job, status), error=job.text("error")))


def _record(db: Database, job: Envelope, sign: agents.Sign) -> None:
    agents.record_sign(db, job, sign)
    note_event(db, job)


def _call(job: Envelope, status: str) -> agents.Sign:
    return agents.Sign(
        agent_id=_id(job),
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
        agent_id=_id(job),
        status=status,
        type=job.text("type"),
        type_is_claudes=True,
        tokens=job.number("tokens"),
        duration_ms=job.number("duration_ms"),
    )


def _id(job: Envelope) -> str:
    id = valid_id(job.text("agent_id"))
    if not id:
        raise BadEnvelopeError("agent_id is not a valid id")
    return id
