"""Agents that sessions spawn, merged from events that arrive in any order or not at all.

The result depends on the set of events, not on their order. The status only moves forward. The
earliest event gives the spawn time, and the latest event the last activity.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from hivepipe.db.database import Database, new_values
from hivepipe.errors import MissingParentError
from hivepipe.jobs.agent_expiry import metadata_of, moment
from hivepipe.jobs.origin import Origin
from hivepipe.transcripts.lines import part

TTL_SECS = 3600
_LATE = "endIsLate"  # key of the metadata: `completed_at` is the time of a late event
ENDS = ("completed", "failed")
# The columns that events of an agent change
_MERGED = (
    *("name", "type", "metadata", "status", "created_at", "last_active", "tool_use_id", "model"),
    *("completed_at", "began_at", "outcome", "error"),
)
_COLUMNS = ("id", "swarm_id", "session_id", "role", *_MERGED)
_RANKS = {"spawned": 0, "running": 1, "completed": 2, "failed": 3, "deleted": 4}


@dataclass(frozen=True, kw_only=True)
class AgentSignal:
    """The content of one event about an agent; None and "" mean unknown."""

    agent_id: str
    status: str
    type: str = ""
    # The type is Claude Code's value, not the one that the caller requested
    type_is_claudes: bool = False
    name: str | None = None
    model: str | None = None
    tool_use_id: str = ""
    caller: str = ""  # the agent that called the Agent tool
    tokens: int | None = None
    duration_ms: int | None = None
    began: bool = False  # Claude Code reports that the agent is running
    is_late: bool = False  # the event arrived some time after the end that it reports
    error: str = ""


def record_signal(db: Database, job: Origin, signal: AgentSignal) -> None:
    """Insert or update the agent's row.

    Raise MissingParentError if the agent is new and its session or swarm does not exist.
    """
    sql = f"SELECT {', '.join(_COLUMNS)} FROM agents WHERE id = :id"
    row = db.row(sql, {"id": signal.agent_id})
    known = dict(row) if row else _new_agent(_swarm_of(db, job), job, signal)
    merged = merge(known, job, signal)
    db.insert("agents", merged, f"(id) DO UPDATE SET {new_values(_MERGED)}")


def name_model(db: Database, agent: str, model: str) -> None:
    """Set the model of an agent whose model is unknown or only "default"."""
    sql = """
        UPDATE agents SET model = :model, metadata = CASE WHEN json_valid(metadata)
          THEN json_set(metadata, '$.model', :model) ELSE metadata END
        WHERE id = :id AND COALESCE(model, 'default') = 'default'
    """
    db.execute(sql, {"id": agent, "model": model})


def _swarm_of(db: Database, job: Origin) -> str:
    session = db.row("SELECT swarm_id FROM sessions WHERE id = :id", {"id": job.session})
    if session is None:
        raise MissingParentError(f"session {job.session} does not exist")
    swarm: str = session["swarm_id"] or ""
    if db.row("SELECT 1 FROM swarms WHERE id = :id", {"id": swarm}) is None:
        raise MissingParentError(f"swarm {swarm} does not exist")
    return swarm


def _new_agent(swarm: str, job: Origin, signal: AgentSignal) -> dict[str, object]:
    return {
        "id": signal.agent_id,
        "swarm_id": swarm,
        "session_id": job.session,
        "role": "task-agent",
        **dict.fromkeys(_MERGED),
        "status": "spawned",
        "created_at": job.time,
        "last_active": job.time,
    }


def merge(known: dict[str, object], job: Origin, signal: AgentSignal) -> dict[str, object]:
    """Return an agent's row merged with one more event; the order of events does not matter."""
    row = dict(known)
    row["name"] = known["name"] or signal.name
    if signal.type:
        row["type"] = signal.type if signal.type_is_claudes else known["type"] or signal.type
    row["model"] = _more_specific(known["model"], signal.model)
    row["tool_use_id"] = known["tool_use_id"] or signal.tool_use_id or None
    if _RANKS[signal.status] > _RANKS[str(known["status"])]:
        row["status"] = signal.status
    row["created_at"] = min(str(known["created_at"] or job.time), job.time)
    row["last_active"] = max(str(known["last_active"] or ""), job.time)
    if signal.began:
        row["began_at"] = min(str(known["began_at"] or job.time), job.time)
    before = metadata_of(known)
    if signal.status in ENDS:
        row["completed_at"] = _end(str(known["completed_at"] or ""), before, job, signal)
        row["outcome"] = row["status"] if row["status"] in ENDS else signal.status
        row["error"] = max(str(known["error"] or ""), signal.error) or None  # equal in any order
    if before is not None:  # metadata that are invalid stay unchanged
        row["metadata"] = orjson.dumps(_render(row, before, job, signal)).decode()
    return row


def _end(known: str, metadata: dict[str, object] | None, job: Origin, signal: AgentSignal) -> str:
    """Return an agent's latest end time.

    An exact time takes precedence over the time of an event that came late (`is_late`). The key
    _LATE of `metadata` is set if the time is not exact, else removed.
    """
    metadata = {} if metadata is None else metadata
    is_exact = bool(known) and not metadata.pop(_LATE, False)
    is_exact, end = max((is_exact, known), (not signal.is_late, job.time))
    if not is_exact:
        metadata[_LATE] = True
    return end


def _more_specific(known: object, new: str | None) -> object:
    """Return the known model, or `new` if the known model is empty or "default"."""
    return new if known in (None, "default") and new else known


def _expiry(last_active: object, otherwise: str) -> str:
    """Return when an agent expires: TTL_SECS after `last_active`, or `otherwise` if invalid."""
    last = moment(last_active) or datetime.fromisoformat(otherwise)
    try:
        expires = (last + timedelta(seconds=TTL_SECS)).astimezone(UTC)
    except OverflowError:  # the sum is after the year 9999
        return _expiry(otherwise, otherwise)
    return expires.strftime("%Y-%m-%dT%H:%M:%SZ")


def _render(
    row: dict[str, object], before: dict[str, object], job: Origin, signal: AgentSignal
) -> dict[str, object]:
    """Return an agent's metadata in the predecessor's format, rebuilt from its row.

    Keys of other programs are kept, such as the key that protects an agent from cleanup.
    """
    context, usage = part(before, "spawn_context"), part(before, "usage")
    instances = (str(context.get("instance_id") or job.instance), job.instance)
    callers = {str(context.get("agent_id") or ""), signal.caller} - {"", row["id"]}
    return {
        **before,
        "model": row["model"],
        "spawnedAt": row["created_at"],
        "source": "claude-code-task",
        "sessionId": row["session_id"],
        "lifecycle": {
            "type": "ephemeral",
            "ttl": TTL_SECS,
            "cleanup_trigger": "task_complete",
            "protected": False,
            **part(before, "lifecycle"),
            "expires_at": _expiry(row["last_active"], job.time),
        },
        "spawn_context": {
            "spawned_by": "claude-code-task",
            "session_id": row["session_id"],
            "instance_id": min(instances),
            **({"agent_id": min(callers)} if callers else {}),
        },
        "usage": {
            "tokens": _first(usage.get("tokens"), signal.tokens),
            "duration_ms": _first(usage.get("duration_ms"), signal.duration_ms),
        },
    }


def _first(known: object, new: int | None) -> object:
    return new if known is None else known
