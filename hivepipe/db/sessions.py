"""Sessions, their swarms and their checkpoints. The status of a session is in `session_state`."""

from typing import Any

import orjson

from hivepipe.db.database import Database, new_values
from hivepipe.db.session_state import note_signal
from hivepipe.errors import MissingParentError
from hivepipe.jobs.origin import Origin
from hivepipe.jobs.session_start import COLUMNS, Start

LATEST_NS = (1 << 63) - 1  # SQLite's limit; a transcript may contain any time


def upsert_session(db: Database, job: Origin, swarm: str, start: Start) -> bool:
    """Insert the session, or merge this start into it; return False if it stays deleted.

    A new session creates its swarm. The swarm of an existing session is not created again, so that
    a deleted swarm stays deleted.
    """
    if start.source:
        db.execute("DELETE FROM deleted_sessions WHERE id = :id", {"id": job.session})
    elif is_deleted(db, job.session):
        return False
    if session_exists(db, job.session):
        _touch_swarm(db, job, swarm)
    else:
        _insert_swarm(db, job, swarm)
    state_ns = _signal_ns(job, start.source)
    known = db.row("SELECT * FROM sessions WHERE id = :id", {"id": job.session})
    merged = _merge_start(dict(known) if known else {}, job, start)
    row = {
        "id": job.session,
        "swarm_id": swarm,
        "swarm_name": job.project.rsplit("/", 1)[-1],
        "project": job.project,
        "created_at": job.time,
        "updated_at": job.time,
        "state_time_ns": state_ns,
    }
    merge = f"""
        (id) DO UPDATE SET created_at = min(sessions.created_at, excluded.created_at),
          updated_at = max(sessions.updated_at, excluded.updated_at), {new_values(merged)}
    """
    states = {"status": "active", "turn": "active"}
    db.insert("sessions", {**row, **merged, **states}, merge)
    if state_ns:
        note_signal(db, job, "active", time_ns=state_ns)
    return True


def _signal_ns(job: Origin, source: str) -> int:
    """Return the time at which this start shows that the session works, or 0 if it does not.

    A start that was derived from another event must not take precedence over that event. After a
    compaction the session works or waits as before.
    """
    if source == "compact":
        return 0
    return job.event_time_ns if source else job.event_time_ns - 1


def _merge_start(known: dict[str, object], job: Origin, start: Start) -> dict[str, object]:
    """Return the session's columns merged with one more start; starts may come in any order.

    A field has the value of the newest SessionStart that had one. The source comes from the oldest
    start, because it says how the session began. A start derived from another event has the time 0,
    so that any SessionStart takes precedence.
    """
    time_ns = job.event_time_ns if start.source else 0
    row = {"metadata": known.get("metadata"), **{column: known.get(column) for column in COLUMNS}}
    for column, field in COLUMNS.items():
        _set_newest(row, column, getattr(start, field), -time_ns if column == "source" else time_ns)
    return row


def _set_newest(row: dict[str, object], column: str, value: str, order: int) -> bool:
    """Set a column unless its value has a higher order; return True if it was set.

    The metadata keep the order of each column. Of two values with the same order, the greater one
    stays.
    """
    metadata = _object_in(row.get("metadata"))
    orders = _orders_in(metadata)
    before = str(row.get(column) or "")
    lowest = -(1 << 63)
    if not value or (order, value) <= (orders.get(column, lowest), before):
        return False
    row[column], metadata["said_ns"] = value, orders | {column: order}
    row["metadata"] = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode()
    return True


def _orders_in(metadata: dict[str, Any]) -> dict[str, float]:
    """Return the order of each column; other values, which a predecessor wrote, are left out."""
    found = metadata.get("said_ns")
    orders = found.items() if isinstance(found, dict) else ()
    return {column: order for column, order in orders if isinstance(order, int | float)}


def _object_in(column: object) -> dict[str, Any]:
    """Return the JSON object in a column; other content, from a predecessor, is wrapped in one."""
    text = str(column or "{}")
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = text
    return found if isinstance(found, dict) else {"imported": found}


def describe_session(db: Database, session: str, column: str, value: str, order: int) -> None:
    """Set a session's model, title or effort from a source other than a start.

    `order` is the event's time; a title that Claude generated has a lower order than any time.
    Nothing is done if the session has no row.
    """
    found = db.row("SELECT * FROM sessions WHERE id = :id", {"id": session})
    row = dict(found) if found else {}
    if row and _set_newest(row, column, value, min(order, LATEST_NS)):
        sql = f"UPDATE sessions SET {column} = :{column}, metadata = :metadata WHERE id = :id"
        db.execute(sql, {"id": session, column: value, "metadata": row["metadata"]})


CLAUDE_CODE = "claude-code"  # the client of a session without a client


def _insert_swarm(db: Database, job: Origin, swarm: str) -> None:
    row = {"id": swarm, "name": job.project.rsplit("/", 1)[-1]}
    times = {"created_at": job.time, "updated_at": job.time}
    db.insert("swarms", {**row, **times, "status": "active"})
    _touch_swarm(db, job, swarm)


def _touch_swarm(db: Database, job: Origin, swarm: str) -> None:
    sql = """
        UPDATE swarms SET
          created_at = CASE WHEN created_at < :time THEN created_at ELSE :time END,
          updated_at = CASE WHEN updated_at > :time THEN updated_at ELSE :time END
        WHERE id = :id
    """
    db.execute(sql, {"id": swarm, "time": job.time})


def require_session(db: Database, job: Origin) -> bool:
    """Tell whether the session exists; return False if it was deleted.

    Raise MissingParentError if it does not exist yet.
    """
    if session_exists(db, job.session):
        return True
    if is_deleted(db, job.session):
        return False
    raise MissingParentError(f"session {job.session} does not exist")


def is_deleted(db: Database, session: str) -> bool:
    sql = "SELECT 1 FROM deleted_sessions WHERE id = :id"
    return db.row(sql, {"id": session}) is not None


def is_ended(db: Database, session: str) -> bool:
    """Tell whether the session is known and has ended."""
    sql = "SELECT 1 FROM sessions WHERE id = :id AND status = 'ended'"
    return db.row(sql, {"id": session}) is not None


def session_exists(db: Database, session: str) -> bool:
    return db.row("SELECT 1 FROM sessions WHERE id = :id", {"id": session}) is not None


def session_ids(db: Database) -> list[str]:
    return [row["id"] for row in db.rows("SELECT id FROM sessions")]


def newest_open_session(db: Database, project: str) -> str:
    """Return the newest active or paused session of a project, or ""."""
    sql = """
        SELECT id FROM sessions WHERE project = :project AND status IN ('active', 'paused')
        ORDER BY created_at DESC, id LIMIT 1
    """
    row = db.row(sql, {"project": project})
    return row["id"] if row else ""


def open_processes(db: Database, host: str) -> list[tuple[int, str]]:
    """Return pid and start time of a host's processes that are in an open session."""
    sql = """
        SELECT DISTINCT instances.pid, instances.pid_started FROM instances
        JOIN instance_sessions ON instance_sessions.instance_id = instances.id
        JOIN sessions ON sessions.id = instance_sessions.session_id
        WHERE instance_sessions.status = 'active' AND sessions.status IN ('active', 'paused')
          AND instances.host = :host
    """
    found = db.rows(sql, {"host": host})
    return [(row["pid"] or 0, row["pid_started"] or "") for row in found]


def save_checkpoint(db: Database, job: Origin, kind: str, trigger: str) -> None:
    """Write checkpoint_data; the newest event counts.

    `operationCount` is the sum over the session's instances, so that the order in which the counts
    arrive does not matter.
    """
    data = {
        "timestamp": job.time,
        "savedBy": job.instance,
        "operationCount": _operations(db, job.session),
        "checkpointType": kind,
        "trigger": trigger,
    }
    newer = """
        UPDATE sessions SET checkpoint_data = :checkpoint_data, checkpoint_time_ns = :time_ns,
          updated_at = CASE WHEN updated_at > :time THEN updated_at ELSE :time END
        WHERE id = :id AND checkpoint_time_ns < :time_ns
    """
    parameters: dict[str, object] = {
        "id": job.session,
        "checkpoint_data": orjson.dumps(data).decode(),
        "time": job.time,
        "time_ns": job.event_time_ns,
    }
    if not db.execute(newer, parameters):
        refresh_operation_count(db, job.session)


def refresh_operation_count(db: Database, session: str) -> None:
    """Update operationCount in checkpoint_data from the totals of the instances."""
    row = db.row("SELECT checkpoint_data FROM sessions WHERE id = :id", {"id": session})
    if row is None or row["checkpoint_data"] is None:
        return
    data = _object_in(row["checkpoint_data"])
    data["operationCount"] = _operations(db, session)
    sql = "UPDATE sessions SET checkpoint_data = :checkpoint_data WHERE id = :id"
    db.execute(sql, {"id": session, "checkpoint_data": orjson.dumps(data).decode()})


def _operations(db: Database, session: str) -> int:
    sql = """
        SELECT COALESCE(SUM(operation_count), 0) AS total FROM instance_sessions
        WHERE session_id = :session
    """
    row = db.row(sql, {"session": session})
    return int(row["total"]) if row else 0
