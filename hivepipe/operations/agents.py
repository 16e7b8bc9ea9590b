"""Handlers of the four events of an agent, which may arrive in any order or not at all."""

from dataclasses import replace

from hivepipe.db import agents
from hivepipe.db.database import Database
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.agents import (
    Agent,
    AgentCall,
    FailAgent,
    FinishAgent,
    InsertAgent,
    StartAgent,
)
from hivepipe.operations.sessions import note_event

DEFAULT_TYPE = "general-purpose"
DEFAULT_MODEL = "default"
DEFAULT_NAME = "task"


def insert_agent(db: Database, job: Origin, args: InsertAgent) -> None:
    """Record that the Agent tool returned; the agent has finished or runs in the background."""
    status = "completed" if args.launch == "completed" else "spawned"
    _record(db, job, _call(job, args, status))


def fail_agent(db: Database, job: Origin, args: FailAgent) -> None:
    """Record that the Agent tool failed, or that the user interrupted the call."""
    interrupted = "interrupted by the user" if args.is_interrupt else ""
    _record(db, job, replace(_call(job, args, "failed"), error=args.error or interrupted))


def start_agent(db: Database, job: Origin, args: StartAgent) -> None:
    """Record that Claude Code spawned or resumed the agent, or that the agent caused an event."""
    _record(db, job, replace(_life(args, "running"), began=True))


def finish_agent(db: Database, job: Origin, args: FinishAgent) -> None:
    """Record the end of an agent.

    A job without agent type comes from a notification, which Claude Code sends some time after the
    end. A SubagentStop has the exact time, but may be missing, as after a user stopped the agent.
    """
    status = "failed" if args.failed else "completed"
    is_late = not args.type and not args.failed
    _record(db, job, replace(_life(args, status), error=args.error, is_late=is_late))


def _record(db: Database, job: Origin, signal: agents.AgentSignal) -> None:
    agents.record_signal(db, job, signal)
    note_event(db, job)


def _call(job: Origin, args: AgentCall, status: str) -> agents.AgentSignal:
    return agents.AgentSignal(
        agent_id=args.agent_id,
        status=status,
        type=args.type or DEFAULT_TYPE,
        name=args.description or DEFAULT_NAME,
        model=args.model or DEFAULT_MODEL,
        tool_use_id=args.tool_use_id,
        caller=job.agent,
        tokens=args.tokens,
        duration_ms=args.duration_ms,
    )


def _life(args: Agent, status: str) -> agents.AgentSignal:
    return agents.AgentSignal(
        agent_id=args.agent_id,
        status=status,
        type=args.type,
        type_is_claudes=True,
        tokens=args.tokens,
        duration_ms=args.duration_ms,
    )
