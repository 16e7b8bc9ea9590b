"""Workers of a hive, their runs and statuses. Rows are kept when the folder is removed.

The rows are copies of data in a worker's folder. Storing the same data again changes nothing, and
neither does an older status after a newer one.
"""

from typing import Any

from hivepipe.db.database import Database
from hivepipe.db.listings import Entry, Listings
from hivepipe.db.tasks import set_task_state
from hivepipe.times import now


def record_worker(db: Database, worker: dict[str, Any]) -> None:
    """Insert a worker; a known worker stays unchanged."""
    db.insert("hive_workers", worker)


def record_run(db: Database, run: dict[str, Any]) -> None:
    """Insert a run, or add its end. Known values stay, and costs only rise."""
    merge = """
        (worker_id, number) DO UPDATE SET
          pid = COALESCE(hive_runs.pid, excluded.pid),
          pid_started = COALESCE(hive_runs.pid_started, excluded.pid_started),
          started_at = COALESCE(hive_runs.started_at, excluded.started_at),
          ended_at = COALESCE(hive_runs.ended_at, excluded.ended_at),
          exit_code = COALESCE(hive_runs.exit_code, excluded.exit_code),
          is_lost = max(hive_runs.is_lost, excluded.is_lost),
          outcome = COALESCE(excluded.outcome, hive_runs.outcome),
          cost_micro_usd = max(hive_runs.cost_micro_usd, excluded.cost_micro_usd)
    """
    db.insert("hive_runs", run, merge)


def record_status(db: Database, status: dict[str, Any]) -> int:
    """Insert a status of a worker; the newest one becomes its current status.

    Return the time (ns since 1970) by which statuses are compared: the time of the status file, or
    an earlier time if the file's time is in the future or the clock was set back.
    """
    is_new = db.insert("hive_statuses", status)
    worker = db.row("SELECT status_ns FROM hive_workers WHERE id = :worker_id", status)
    latest_ns = worker["status_ns"] if worker and not is_new else 0
    time_ns: int = min(status["changed_ns"], latest_ns or now()[1])
    sql = """
        UPDATE hive_workers SET status = :status, status_at = :changed_at, status_ns = :time_ns
        WHERE id = :worker_id AND status_ns < :time_ns
    """
    names = ("status", "changed_at", "worker_id")
    db.execute(sql, {"time_ns": time_ns, **{name: status[name] for name in names}})
    return time_ns


def set_state(db: Database, worker: str, state: str) -> None:
    """Store the state of a worker that the latest check found."""
    sql = "UPDATE hive_workers SET state = :state WHERE id = :id"
    db.execute(sql, {"state": state, "id": worker})


def states(store: Listings) -> dict[str, int]:
    """Return state -> number of workers in all hives, without archived and deleted workers."""
    sql = """
        SELECT state, COUNT(*) AS number FROM hive_workers
        WHERE state IS NOT NULL AND archived_at IS NULL AND deleted_at IS NULL GROUP BY state
    """
    return {row["state"]: row["number"] for row in store.rows(sql, {})}


def end_worker(db: Database, worker: str, column: str) -> None:
    """Set `column` (archived_at or deleted_at) of a worker to now, unless it is set.

    Cancel the task that the worker leaves (see `_task_left_by`).
    """
    if column not in ("archived_at", "deleted_at"):
        raise ValueError(column)
    at, time_ns = now()
    sql = f"UPDATE hive_workers SET {column} = :time WHERE id = :id AND {column} IS NULL"
    db.execute(sql, {"time": at, "id": worker})
    if task := _task_left_by(db, worker):
        reason = f"its worker was {column.removesuffix('_at')} before it reported done"
        set_task_state(db, task, "cancelled", at, time_ns, reason)


def _task_left_by(db: Database, worker: str) -> str:
    """Return the open task of an ended worker if no other worker still has it, or "".

    Only a task that a spawn created (its id is a worker's id) is returned. All other tasks belong
    to the user and stay open.
    """
    sql = """
        SELECT tasks.id FROM hive_workers AS ended JOIN tasks ON tasks.id = ended.task_id
        WHERE ended.id = :worker AND tasks.status = 'open'
          AND EXISTS (SELECT 1 FROM hive_workers WHERE id = tasks.id)
          AND NOT EXISTS (SELECT 1 FROM hive_workers
            WHERE task_id = tasks.id AND archived_at IS NULL AND deleted_at IS NULL)
    """
    row = db.row(sql, {"worker": worker})
    return row["id"] if row else ""


def live_workers(db: Database, hive: str) -> set[str]:
    """Return the workers of a hive that are neither archived nor deleted in the database."""
    sql = """
        SELECT id FROM hive_workers
        WHERE hive = :hive AND archived_at IS NULL AND deleted_at IS NULL
    """
    return {row["id"] for row in db.rows(sql, {"hive": hive})}


def archived_before(db: Database, hive: str, time: str) -> set[str]:
    """Return the workers of a hive that were archived before a UTC time."""
    sql = "SELECT id FROM hive_workers WHERE hive = :hive AND archived_at < :time"
    return {row["id"] for row in db.rows(sql, {"hive": hive, "time": time})}


def ended_worker(db: Database, session: str) -> str:
    """Return a text that names the archived or deleted worker of a session, or ""."""
    sql = """
        SELECT id, deleted_at FROM hive_workers
        WHERE session_id = :session AND (archived_at IS NOT NULL OR deleted_at IS NOT NULL)
    """
    row = db.row(sql, {"session": session})
    return f"{row['id']} is {'deleted' if row['deleted_at'] else 'archived'}" if row else ""


def workers_of(store: Listings, hive: str) -> list[Entry]:
    """Return all workers of a hive with their costs, also workers without a folder.

    `unpriced` is the number of runs that ended without a result, so that their cost is unknown.
    """
    sql = """
        SELECT hive_workers.*, COALESCE(SUM(cost_micro_usd), 0) AS micro_usd,
          COALESCE(SUM(CASE WHEN pid IS NOT NULL AND ended_at IS NOT NULL AND outcome IS NULL
            THEN 1 ELSE 0 END), 0) AS unpriced
        FROM hive_workers LEFT JOIN hive_runs ON worker_id = hive_workers.id
        WHERE hive = :hive GROUP BY hive_workers.id ORDER BY created_at, hive_workers.id
    """
    return store.rows(sql, {"hive": hive})


def stored_marks(db: Database, worker: str) -> set[tuple[object, ...]]:
    """Return tuples of a worker's stored state, runs and statuses; set() for an unknown worker."""
    row = db.row("SELECT state FROM hive_workers WHERE id = :id", {"id": worker})
    if row is None:
        return set()
    sql = "SELECT number, pid, ended_at, cost_micro_usd FROM hive_runs WHERE worker_id = :id"
    runs = (tuple(run) for run in db.rows(sql, {"id": worker}))
    sql = "SELECT 'status', changed_ns FROM hive_statuses WHERE worker_id = :id"
    statuses = (tuple(status) for status in db.rows(sql, {"id": worker}))
    return {("state", row["state"]), *runs, ("status", 0), *statuses}


def spent_since(db: Database, time: str, unknown_micro_usd: int) -> int:
    """Return the cost of ask, park and respawned runs since a time, in millionths of a dollar.

    The cost of a run that still runs or was killed is unknown. It is assumed to equal the highest
    known cost of a run of its worker, or of the worker that this one replaced, else
    `unknown_micro_usd`.
    """
    sql = """
        SELECT hive_runs.cost_micro_usd AS cost, hive_runs.outcome AS outcome,
          (SELECT MAX(other.cost_micro_usd) FROM hive_runs AS other
           WHERE other.worker_id IN (hive_runs.worker_id, hive_workers.respawn_of)) AS dearest
        FROM hive_runs LEFT JOIN hive_workers ON hive_workers.id = hive_runs.worker_id
        WHERE hive_runs.started_at >= :time
          AND (hive_runs.kind IN ('ask', 'park') OR hive_workers.respawn_of IS NOT NULL)
    """
    rows = db.rows(sql, {"time": time})
    return sum(
        int(row["cost"] if row["outcome"] else row["dearest"] or unknown_micro_usd) for row in rows
    )
