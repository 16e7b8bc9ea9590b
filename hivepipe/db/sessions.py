"""Sessions, their swarms and their checkpoints. The status of a session is in `session_state`."""

from collections.abc import Mapping
from typing import Any

import orjson

from hivepipe.db.database import Database
from hivepipe.db.session_state import note_signal
from hivepipe.errors import MissingParentError
from hivepipe.jobs.about_session import AboutSession
from hivepipe.jobs.origin import Origin

LATEST_NS = (1 << 63) - 1  # SQLite's limit; a transcript may contain any time


def upsert_session(db: Database, job: Origin, swarm: str, start: AboutSession) -> bool:
    """Insert a started session, or merge the start into its row.

    Return False for a deleted session, which only a start with a `source` restores. The swarm is
    created with a new session only, so that a deleted swarm stays deleted.
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
    row = {
        "id": job.session,
        "swarm_id": swarm,
        "swarm_name": job.project.rsplit("/", 1)[-1],
        "project": job.project,
        "created_at": job.time,
        "updated_at": job.time,
        "state_time_ns": state_ns,
    }
    merge = """
        (id) DO UPDATE SET created_at = min(sessions.created_at, excluded.created_at),
          updated_at = max(sessions.updated_at, excluded.updated_at)
    """
    db.insert("sessions", {**row, "status": "active", "turn": "active"}, merge)
    describe_session(db, job.session, start.columns(), job.event_time_ns if start.source else 0)
    if state_ns:
        note_signal(db, job, "active", time_ns=state_ns)
    return True


def _signal_ns(job: Origin, source: str) -> int:
    """Return the time of a session's start if the start shows that the session works, else 0.

    A start that was derived from another event must not take precedence over that event. After a
    compaction, a start does not show whether the session works.
    """
    if source == "compact":
        return 0
    return job.event_time_ns if source else job.event_time_ns - 1


def _set_newest(row: dict[str, object], column: str, value: str, order: int) -> None:
    """Set a column of a session's row, unless its present value was set with a higher order.

    An order is usually the time of an event. The metadata of the row keep the order of each column.
    If the orders are equal, the greater value stays.
    """
    metadata = _object_in(row.get("metadata"))
    orders = _orders_in(metadata)
    before = str(row.get(column) or "")
    lowest = -(1 << 63)
    if not value or (order, value) <= (orders.get(column, lowest), before):
        return
    row[column], metadata["said_ns"] = value, orders | {column: order}
    row["metadata"] = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode()


def _orders_in(metadata: dict[str, Any]) -> dict[str, float]:
    """Return column -> the order that `_set_newest` stored; ignore a predecessor's content."""
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


def describe_session(db: Database, session: str, said: Mapping[str, str], order: int) -> None:
    """Set columns of a session to the values in `said`, except where a newer value is known.

    `order` is the event's time, 0 for a start that was derived from another event, or less than any
    time for a title that Claude generated. The oldest source stays, because it says how the session
    began. Nothing is done if the session has no row.
    """
    found = db.row("SELECT * FROM sessions WHERE id = :id", {"id": session}) if said else None
    if found is None:
        return
    row = dict(found)
    for column, value in said.items():
        _set_newest(row, column, value, -order if column == "source" else min(order, LATEST_NS))
    changed = {name: value for name, value in row.items() if value != found[name]}
    if changed:
        sql = f"UPDATE sessions SET {', '.join(f'{it} = :{it}' for it in changed)} WHERE id = :id"
        db.execute(sql, {**changed, "id": session})


CLAUDE_CODE = "claude-code"  # the client of a session that names none


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
    """Return True if the session exists, and False if it was deleted.

    Raise MissingParentError if no job has created it yet.
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
    """Return the newest active or paused session of a project, or "" if there is none."""
    sql = """
        SELECT id FROM sessions WHERE project = :project AND status IN ('active', 'paused')
        ORDER BY created_at DESC, id LIMIT 1
    """
    row = db.row(sql, {"project": project})
    return row["id"] if row else ""


def open_processes(db: Database, host: str) -> list[tuple[int, str]]:
    """Return (pid, start time) of the processes on a host that are in an open session."""
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
    """Write the session's checkpoint_data, unless a newer event has written that column.

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
    """Set operationCount in checkpoint_data to the sum of the instances' totals."""
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
