"""The user's tasks. State, progress and session each have the value of the newest event."""

from collections.abc import Mapping

from hivepipe.db.database import Database
from hivepipe.db.listings import Entry, Listings, prefix_bounds

_COLUMNS = """
    id, status, text, progress, reason, session_id, created_at, updated_at, progress_at, finished_at
"""


def add_task(db: Database, task: str, text: str, time: str) -> None:
    """Insert a task, or set a known task's missing text; the earlier creation time stays."""
    known = """
        (id) DO UPDATE SET text = COALESCE(tasks.text, excluded.text),
          created_at = CASE WHEN tasks.created_at < excluded.created_at THEN tasks.created_at
            ELSE excluded.created_at END
    """
    row = {"id": task, "text": text or None, "created_at": time, "updated_at": time}
    db.insert("tasks", row | {"status": "open"}, known)


def set_task_state(
    db: Database, task: str, status: str, time: str, time_ns: int, reason: str = ""
) -> None:
    """Set a task to open, done or cancelled, unless a newer state is stored."""
    finished_at = None if status == "open" else time
    columns = {"status": status, "reason": reason or None, "finished_at": finished_at}
    _set_newer(db, task, "state_time_ns", columns, time, time_ns)


def set_task_progress(db: Database, task: str, progress: str, time: str, time_ns: int) -> None:
    """Set the progress of a task, unless newer progress is stored."""
    columns = {"progress": progress, "progress_at": time}
    _set_newer(db, task, "progress_time_ns", columns, time, time_ns)


def assign_task(db: Database, task: str, session: str, time: str, time_ns: int) -> None:
    """Record the session that works on a task, unless a newer event has set it."""
    _set_newer(db, task, "assigned_time_ns", {"session_id": session}, time, time_ns)


def _set_newer(
    db: Database, task: str, order: str, columns: Mapping[str, str | None], time: str, time_ns: int
) -> None:
    """Set columns of a task, unless the column `order` has the time of a newer event."""
    sql = f"""
        UPDATE tasks SET {", ".join(f"{name} = :{name}" for name in columns)}, {order} = :time_ns,
          updated_at = CASE WHEN updated_at > :time THEN updated_at ELSE :time END
        WHERE id = :id AND {order} < :time_ns
    """
    db.execute(sql, {**columns, "id": task, "time": time, "time_ns": time_ns})


def has_text(db: Database, task: str) -> bool:
    row = db.row("SELECT text FROM tasks WHERE id = :id", {"id": task})
    return row is not None and row["text"] is not None


def tasks_like(db: Database, prefix: str) -> list[str]:
    """Return the task ids with this prefix, or only `prefix` if that is the id of a task."""
    sql = "SELECT id FROM tasks WHERE id >= :prefix AND id < :behind ORDER BY id"
    found = [str(row["id"]) for row in db.rows(sql, prefix_bounds(prefix))]
    return [prefix] if prefix in found else found


def list_tasks(store: Listings, with_finished: bool) -> list[Entry]:
    """Return the open tasks or all tasks, most recently updated first."""
    sql = f"""
        SELECT {_COLUMNS} FROM tasks WHERE :all OR status = 'open' ORDER BY updated_at DESC, id
    """
    return store.rows(sql, {"all": with_finished})


def find_task(store: Listings, task: str) -> Entry | None:
    """Return a task by its full id, or None if the id is unknown."""
    return store.row(f"SELECT {_COLUMNS} FROM tasks WHERE id = :id", {"id": task})
