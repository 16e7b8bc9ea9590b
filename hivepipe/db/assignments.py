"""Record which session each instance is in.

An instance is in the session of its newest event, until this session or the process ends.
"""

from collections.abc import Mapping
from typing import NamedTuple

from hivepipe.db.database import Database
from hivepipe.db.session_state import update_status
from hivepipe.errors import MissingParentError
from hivepipe.events.job_plan import TWIN_WINDOW_NS
from hivepipe.jobs.origin import Origin


class Process(NamedTuple):
    """The process of an instance; None and "" mean unknown."""

    pid: int | None
    started: str
    host: str
    boot: str
    pid_space: str


def assign_instance(db: Database, job: Origin, process: Process) -> None:
    """Record that an instance is in a session and has left its previous session."""
    seen = """
        (id) DO UPDATE SET
          status = CASE WHEN instances.gone_at >= excluded.last_seen THEN instances.status
            ELSE 'running' END,
          started_at = min(instances.started_at, excluded.started_at),
          last_seen = max(instances.last_seen, excluded.last_seen)
    """
    row = {
        "id": job.instance,
        "pid": process.pid,
        "pid_started": process.started,
        "host": process.host,
        "boot": process.boot or None,
        "pid_space": process.pid_space or None,
        "started_at": job.time,
        "last_seen": job.time,
    }
    db.insert("instances", row | {"status": "running"}, seen)
    note_instance(db, job, process.pid)


def note_instance(db: Database, job: Origin, pid: int | None = None) -> None:
    """Record an event of the job's instance in the job's session; update the instance's session."""
    merge = """
        (id) DO UPDATE SET
          pid = COALESCE(instance_sessions.pid, excluded.pid),
          started_at = min(instance_sessions.started_at, excluded.started_at),
          last_seen = max(instance_sessions.last_seen, excluded.last_seen),
          assigned_time_ns = max(instance_sessions.assigned_time_ns, excluded.assigned_time_ns)
    """
    row = {
        "id": f"{job.instance}:{job.session}",
        "session_id": job.session,
        "instance_id": job.instance,
        "pid": pid,
        "started_at": job.time,
        "last_seen": job.time,
        "assigned_time_ns": job.event_time_ns,
    }
    db.insert("instance_sessions", row | {"status": "detached"}, merge)
    if session_of_instance(db, job.instance) != job.session:
        choose_session(db, job.instance)


def detach_instance(db: Database, job: Origin) -> None:
    """Record that an instance left a session; raise MissingParentError if it never entered."""
    changes = "detached_time_ns = max(detached_time_ns, :time_ns)"
    _update(db, job, changes, {"time_ns": job.event_time_ns})
    choose_session(db, job.instance)


def raise_totals(db: Database, job: Origin, operations: int, checkpoints: int) -> None:
    """Set each total of the instance in this session to the job's total if that is higher.

    Raise MissingParentError if the instance is not in the session yet.
    """
    changes = """
        operation_count = max(operation_count, :operations),
        checkpoint_count = max(checkpoint_count, :checkpoints)
    """
    _update(db, job, changes, {"operations": operations, "checkpoints": checkpoints})


def _update(db: Database, job: Origin, changes: str, values: Mapping[str, int]) -> None:
    sql = f"""
        UPDATE instance_sessions SET {changes},
          last_seen = CASE WHEN last_seen > :time THEN last_seen ELSE :time END
        WHERE instance_id = :instance AND session_id = :session
    """
    who = {"instance": job.instance, "session": job.session, "time": job.time}
    if not db.execute(sql, {**who, **values}):
        raise MissingParentError(f"instance {job.instance} is not in session {job.session}")


def end_is_stored(db: Database, job: Origin) -> bool:
    """Tell whether the SessionEnd of this job, a duplicate of it or a later one is stored."""
    sql = "SELECT 1 FROM instance_sessions WHERE id = :id AND detached_time_ns > :before_ns"
    id = f"{job.instance}:{job.session}"
    return db.row(sql, {"id": id, "before_ns": job.event_time_ns - 2 * TWIN_WINDOW_NS}) is not None


def lose_instance(db: Database, job: Origin) -> None:
    """Record the end of an instance's process.

    The instance leaves its session, unless a later event has come.
    """
    sql = """
        UPDATE instances SET
          gone_at = CASE WHEN gone_at > :time THEN gone_at ELSE :time END,
          status = CASE WHEN last_seen > :time THEN status ELSE 'gone' END
        WHERE id = :instance
    """
    db.execute(sql, {"instance": job.instance, "time": job.time})
    choose_session(db, job.instance)


def choose_session(db: Database, instance: str) -> None:
    """Assign the instance to the session of its newest event, unless session or process ended."""
    before = session_of_instance(db, instance)
    parameters = {"instance": instance}
    leave = """
        UPDATE instance_sessions SET status = 'detached'
        WHERE instance_id = :instance AND status = 'active'
    """
    enter = """
        UPDATE instance_sessions SET status = 'active'
        WHERE id = (SELECT id FROM instance_sessions WHERE instance_id = :instance
                    ORDER BY assigned_time_ns DESC, id LIMIT 1)
          AND assigned_time_ns > detached_time_ns
          AND NOT EXISTS (SELECT 1 FROM instances WHERE id = :instance AND status = 'gone')
    """
    db.execute(leave, parameters)
    db.execute(enter, parameters)
    for session in {before, session_of_instance(db, instance)} - {""}:
        update_status(db, session)
    _end_visited_sessions(db, instance)


def _end_visited_sessions(db: Database, instance: str) -> None:
    """End again the sessions that this instance reopened by a single event and then left.

    In Claude Code 2.1.197 and some later versions, the first event of a fork names the forked
    session.
    """
    visited = """
        SELECT visit.session_id FROM instance_sessions AS visit
        JOIN sessions ON sessions.id = visit.session_id
        JOIN instance_sessions AS later ON later.instance_id = visit.instance_id
          AND later.assigned_time_ns > visit.assigned_time_ns
        WHERE visit.instance_id = :instance AND visit.assigned_time_ns = sessions.state_time_ns
          AND visit.detached_time_ns < visit.assigned_time_ns
          AND visit.started_at = visit.last_seen
          AND sessions.last_end_ns BETWEEN 1 AND sessions.state_time_ns
    """
    sql = "UPDATE sessions SET state_time_ns = last_end_ns - 1 WHERE id = :id"
    for row in db.rows(visited, {"instance": instance}):
        db.execute(sql, {"id": row["session_id"]})
        update_status(db, row["session_id"])


def session_of_instance(db: Database, instance: str) -> str:
    sql = """
        SELECT session_id FROM instance_sessions
        WHERE instance_id = :instance AND status = 'active'
    """
    row = db.row(sql, {"instance": instance})
    return row["session_id"] if row else ""
