"""Convert columns, times and status values of the predecessor's rows, and insert the rows.

Rows from hivepipe's hooks take precedence over imported rows, and newer imported rows take
precedence over older ones.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite

from hivepipe.db.database import Database
from hivepipe.db.forget import is_forgotten
from hivepipe.errors import BadEnvelopeError, MissingParentError
from hivepipe.events.claude_code import valid_id
from hivepipe.times import in_store_form
from hivepipe.transcripts.lines import LARGEST_COUNT, read_object

# Columns that both hivepipe and its predecessor have; parent tables come first.
TABLES: dict[str, tuple[str, ...]] = {
    "swarms": ("id", "name", "objective", "status", "created_at", "updated_at", "deleted_at"),
    "sessions": (
        *("id", "swarm_id", "swarm_name", "objective", "status", "checkpoint_data", "metadata"),
        *("child_pids", "created_at", "updated_at", "paused_at"),
    ),
    "agents": (
        *("id", "swarm_id", "session_id", "name", "type", "role", "metadata", "status"),
        *("created_at", "last_active", "deleted_at"),
    ),
    "instance_sessions": (
        *("id", "session_id", "instance_id", "pid", "tty", "started_at", "last_seen"),
        *("checkpoint_count", "operation_count", "status"),
    ),
    "session_logs": ("id", "session_id", "log_level", "message", "data", "created_at"),
    "tasks": (
        *("id", "session_id", "text", "status", "progress", "reason"),
        *("created_at", "updated_at", "finished_at"),
    ),
}
# (table, column) -> its name in the predecessor's schemas.
OTHER_NAMES = {
    ("session_logs", "created_at"): ("timestamp",),
    ("tasks", "text"): ("description", "title"),
    ("tasks", "progress"): ("result",),
    ("tasks", "reason"): ("error",),
    ("tasks", "finished_at"): ("completed_at",),
}
_IDS = {
    "swarms": ("id",),
    "sessions": ("id", "swarm_id"),
    "agents": ("id", "session_id"),
    "instance_sessions": ("session_id", "instance_id"),
    "session_logs": ("session_id",),
    "tasks": ("id", "session_id"),
}
TIMES = {
    *("created_at", "updated_at", "deleted_at", "paused_at", "last_active"),
    *("started_at", "last_seen", "finished_at"),
}
_EARLIEST_SECS, _LATEST_SECS = 10**8, 10**10  # 1973, 2286
_AGENT_STATES = ("spawned", "running", "completed", "failed", "deleted")
_TASK_STATES = {
    **dict.fromkeys(("completed", "complete", "done", "finished", "success"), "done"),
    **dict.fromkeys(("cancelled", "canceled", "failed", "error", "aborted"), "cancelled"),
}


def utc_time(text: str, otherwise: str | None = None) -> str:
    """Return a time in the store's format; a time without a zone is local time.

    Any other text is returned unchanged, or replaced by `otherwise`.
    """
    try:
        return in_store_form(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return text if otherwise is None else otherwise


def _time(value: object) -> object:
    """Return a time in UTC, or unchanged if unknown; a number counts s, ms, us or ns since 1970."""
    if isinstance(value, str) and not re.fullmatch(r"\s*\d{9,19}(\.\d*)?\s*", value, re.ASCII):
        return utc_time(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    secs = float(value)
    while isfinite(secs) and secs > _LATEST_SECS:
        secs /= 1000
    if not _EARLIEST_SECS <= secs <= _LATEST_SECS:
        return value
    return utc_time(datetime.fromtimestamp(secs, UTC).isoformat())


def is_local(text: object) -> bool:
    """Tell whether the text is a time without a time zone."""
    try:
        return isinstance(text, str) and datetime.fromisoformat(text.strip()).tzinfo is None
    except ValueError:
        return False


def in_utc(row: Mapping[str, object]) -> dict[str, object]:
    return {name: _time(value) if name in TIMES else value for name, value in row.items()}


def known_rows(db: Database) -> dict[str, list[dict[str, object]]]:
    """Return the rows that imported SQL statements can refer to: all rows except log lines."""
    return {
        table: [dict(row) for row in db.rows(f"SELECT {', '.join(columns)} FROM {table}")]
        for table, columns in TABLES.items()
        if table != "session_logs"
    }


def import_row(db: Database, table: str, row: Mapping[str, object], job_id: str) -> None:
    """Import one row of TABLES.

    Raise BadEnvelopeError if the row is invalid or its session was forgotten, and
    MissingParentError if it refers to a row that the store does not have.
    """
    known = {name: row.get(name) for name in TABLES[table]}
    if table == "agents":
        known["session_id"] = known["session_id"] or _session_in(known["metadata"])
    session = known["id"] if table == "sessions" else known.get("session_id")
    if is_forgotten(db, str(session or "")):
        raise BadEnvelopeError("its session was forgotten")
    for name in _IDS[table]:
        id = str(known[name] or "")  # the file name contains the id
        if valid_id(id) != id or (name == "id" and not id):
            raise BadEnvelopeError(
                f"{name} is not an id: letters, digits, '.', '_', '-', up to 128"
            )
    _IMPORTERS[table](db, job_id, known)


def _swarm(db: Database, _job_id: str, row: dict[str, object]) -> None:
    db.insert("swarms", row | {"status": row["status"] or "active"})


def _session(db: Database, _job_id: str, row: dict[str, object]) -> None:
    """Import a session as ended. The session becomes active when a person resumes it."""
    extra = {"status": "ended", "ended_at": row["updated_at"], "end_reason": "imported"}
    if db.insert("sessions", row | extra):
        return
    sql = """
        UPDATE sessions SET checkpoint_data = COALESCE(:checkpoint_data, checkpoint_data),
          objective = COALESCE(:objective, objective), updated_at = :updated_at
        WHERE id = :id AND state_time_ns = 0 AND updated_at < :updated_at
    """
    names = ("id", "checkpoint_data", "objective", "updated_at")
    db.execute(sql, {name: row[name] for name in names})


def _agent(db: Database, _job_id: str, row: dict[str, object]) -> None:
    swarm = row["swarm_id"]
    if db.row("SELECT 1 FROM swarms WHERE id = :id", {"id": swarm}) is None:
        raise MissingParentError(f"swarm {swarm} does not exist" if swarm else "it has no swarm")
    status = row["status"] if row["status"] in _AGENT_STATES else "completed"
    db.insert("agents", row | {"status": "deleted" if row["deleted_at"] else status})


def _session_in(metadata: object) -> str | None:
    """Return the session id in an agent's metadata, or None.

    The predecessor's table of agents has no column for it.
    """
    fields = read_object(metadata.encode("utf-8", "replace")) if isinstance(metadata, str) else None
    if fields is None:
        return None
    context = fields.get("spawn_context")
    inner = context.get("session_id") if isinstance(context, dict) else None
    session = fields.get("sessionId") or inner
    is_id = isinstance(session, str) and valid_id(session) == session
    return session if is_id else None


def _instance_session(db: Database, _job_id: str, row: dict[str, object]) -> None:
    session = row["session_id"]
    if db.row("SELECT 1 FROM sessions WHERE id = :id", {"id": session}) is None:
        raise MissingParentError(f"session {session} does not exist")
    counts = {name: _count(row[name]) for name in ("checkpoint_count", "operation_count")}
    if db.insert("instance_sessions", row | counts | {"status": "detached"}):
        return
    sql = """
        UPDATE instance_sessions SET
          checkpoint_count = MAX(checkpoint_count, :checkpoint_count),
          operation_count = MAX(operation_count, :operation_count)
        WHERE id = :id AND assigned_time_ns = 0
    """
    db.execute(sql, {"id": row["id"], **counts})


def _count(value: object) -> int:
    """Return a count, even if it is stored as text or float; 0 for any other or too large value."""
    try:
        number = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0
    return int(number) if number.is_integer() and 0 <= number < LARGEST_COUNT else 0


def _log(db: Database, job_id: str, row: dict[str, object]) -> None:
    row.pop("id")  # our table has its own ids
    db.insert("session_logs", row | {"log_level": row["log_level"] or "INFO", "job_id": job_id})


def _task(db: Database, _job_id: str, row: dict[str, object]) -> None:
    """Import a task. A failed task becomes cancelled, because the state "failed" does not exist."""
    status_text = str(row["status"] or "")
    status = _TASK_STATES.get(status_text.lower(), "open")
    reason = row["reason"] or (status_text if status == "cancelled" else None)
    updated = row["updated_at"] or row["finished_at"] or row["created_at"]
    db.insert("tasks", row | {"status": status, "reason": reason, "updated_at": updated})


_IMPORTERS = {
    "swarms": _swarm,
    "sessions": _session,
    "agents": _agent,
    "instance_sessions": _instance_session,
    "session_logs": _log,
    "tasks": _task,
}
