"""Forget a session: delete its rows, and remove its texts from the database file.

A table that a migration adds with a column `session_id` must be added to TABLES or NAMING.
"""

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hivepipe.db.database import Database, Row
from hivepipe.db.hive import end_worker
from hivepipe.db.listings import listings, prefix_bounds, quoted
from hivepipe.jobs.forget_query import ForgetQuery

FORGOTTEN = "***FORGOTTEN***"
CHECKPOINT_SECS = 30

# table -> the column that names the session, and SQL of a row's last time; referencing tables come
# before referenced ones
TABLES = {
    "instance_sessions": ("session_id", "last_seen"),
    "agents": ("session_id", "max(created_at, COALESCE(last_active, ''))"),
    "session_logs": ("session_id", "created_at"),
    "prompts": ("session_id", "created_at"),
    "skill_uses": ("session_id", "created_at"),
    "imported_skill_sessions": ("session_id", "''"),
    "usage": ("session_id", "created_at"),
    "usage_sums": ("session_id", "began"),
    "cost_states": ("session_id", "created_at"),
    "activity": ("session_id", "last_active_at"),
    "summaries": ("session_id", "made_at"),
    "retrievals": ("session_id", "retrieved_at"),
    "memory_ratings": ("session_id", "rated_at"),
    "hive_statuses": ("session_id", "COALESCE(changed_at, '')"),
    "hive_runs": ("session_id", "max(COALESCE(started_at, ''), COALESCE(ended_at, ''))"),
    "hive_workers": ("session_id", "max(COALESCE(created_at, ''), COALESCE(status_at, ''))"),
    "profile_sessions": ("session_id", "entered_at"),
    "identity_versions": ("session_id", "created_at"),
    "sessions": ("id", "updated_at"),
}

# table -> the column that names the session
NAMING = {**{table: column for table, (column, _) in TABLES.items()}, "tasks": "session_id"}

# Tasks belong to the user: a task stays, without the progress that the session reported.
TASKS_SQL = """
    UPDATE tasks SET session_id = NULL, progress = NULL, progress_at = NULL
    WHERE session_id = :session
"""

_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"


def is_forgotten(db: Database, session: str) -> bool:
    sql = "SELECT 1 FROM forgotten_sessions WHERE id = :id"
    return bool(session) and db.row(sql, {"id": session}) is not None


def forgotten_sessions(path: Path) -> set[str]:
    """Return all forgotten sessions, set() without a database. Raise StoreError if unreadable."""
    if not path.exists():
        return set()
    with listings(path) as store:
        if not store.rows("SELECT 1 FROM sqlite_master WHERE name = 'forgotten_sessions'", {}):
            return set()  # an older hivepipe's database that is not migrated yet
        return {row["id"] for row in store.rows("SELECT id FROM forgotten_sessions", {})}


def sessions_beginning(db: Database, start: str) -> set[str]:
    """Return the session ids in any table that begin with `start`."""
    found: set[str] = set()
    for table, column in NAMING.items():
        sql = f"""
            SELECT DISTINCT {column} AS id FROM {table}
            WHERE {column} >= :prefix AND {column} < :behind
        """
        found |= {row["id"] for row in db.rows(sql, prefix_bounds(start))}
    return found


def last_seen(db: Database) -> dict[str, str]:
    """Return session -> time of its last row in any table (UTC)."""
    parts = (
        f"SELECT {column} AS id, {time} AS time FROM {table}"
        for table, (column, time) in TABLES.items()
    )
    sql = f"""
        SELECT id, max(time) AS time FROM ({" UNION ALL ".join(parts)})
        WHERE id IS NOT NULL AND id <> '' GROUP BY id
    """
    return {row["id"]: row["time"] or "" for row in db.rows(sql)}


def sessions_with_text(db: Database, wanted: ForgetQuery) -> set[str]:
    """Return the sessions of the rows that contain the text."""
    found = set()
    for table, column in NAMING.items():
        for row in db.each(f"SELECT * FROM {table}"):
            if row[column] and _columns_with_text(row, wanted):
                found.add(row[column])
    return found


def remove_text(db: Database, wanted: ForgetQuery, *, dry_run: bool = False) -> int:
    """Replace the text with a placeholder in all tables; return the number of rows with it.

    Rows of the sessions in `wanted` are skipped. With `dry_run`, rows are only counted.
    A row whose primary key contains the text is deleted, unless foreign keys refer to the row.
    """
    tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'"
    )
    changed = 0
    for table in [row["name"] for row in db.rows(tables)]:
        keys = "SELECT name FROM pragma_table_info(:table) WHERE pk > 0"
        named_by = {row["name"] for row in db.rows(keys, {"table": table})}
        column, _ = TABLES.get(table, ("", ""))
        found = [
            (row, columns)
            for row in db.each(f"SELECT _rowid_ AS number_of_row, * FROM {quoted(table)}")
            # A row that is deleted with its session is skipped
            if not (column and row[column] in wanted.sessions)
            and (columns := _columns_with_text(row, wanted))
        ]
        changed += len(found)
        for row, columns in found if not dry_run else ():
            with suppress(sqlite3.IntegrityError):
                _clean_row(db, table, row, columns, wanted, named_by)
    return changed


def _clean_row(
    db: Database, table: str, row: Row, columns: list[str], wanted: ForgetQuery, named_by: set[str]
) -> None:
    which = {"number_of_row": row["number_of_row"]}
    if named_by.intersection(columns):
        db.execute(f"DELETE FROM {quoted(table)} WHERE _rowid_ = :number_of_row", which)
        return
    # A column's name tells how it is redacted. The name of a column that a person added may not be
    # valid as a parameter.
    are_names = all(name.isidentifier() for name in columns)
    parameters = columns if are_names else [f"v{n}" for n in range(len(columns))]
    pairs = [*zip(columns, parameters, strict=True)]
    values = {parameter: wanted.replaced(row[name], FORGOTTEN) for name, parameter in pairs}
    to = ", ".join(f"{quoted(name)} = :{parameter}" for name, parameter in pairs)
    db.execute(
        f"UPDATE {quoted(table)} SET {to} WHERE _rowid_ = :number_of_row", {**values, **which}
    )


def _columns_with_text(row: Row, wanted: ForgetQuery) -> list[str]:
    return [
        name
        for name, value in zip(row.keys(), row, strict=True)
        if isinstance(value, str) and wanted.contains_text(value.encode("utf-8", "surrogatepass"))
    ]


def transcript_of(db: Database, session: str) -> str:
    """Return the path of Claude Code's transcript of a session, or "" if it is unknown."""
    row = db.row("SELECT transcript_path FROM sessions WHERE id = :id", {"id": session})
    return (row["transcript_path"] or "") if row else ""


def hive_workers_of(db: Database, session: str) -> list[tuple[str, str]]:
    """Return (hive folder, worker id) of the hive workers that ran as this session."""
    sql = "SELECT hive, id FROM hive_workers WHERE session_id = :session ORDER BY hive, id"
    return [(row["hive"], row["id"]) for row in db.rows(sql, {"session": session})]


def rows_of(db: Database, sessions: Iterable[str]) -> Counter[str]:
    """Return table -> number of rows of these sessions."""
    counts: Counter[str] = Counter()
    for session in sessions:
        for table, column in NAMING.items():
            sql = f"SELECT count(*) AS n FROM {table} WHERE {column} = :session"
            row = db.row(sql, {"session": session})
            counts[table] += row["n"] if row else 0
    return +counts


def remove_rows(db: Database, sessions: Iterable[str]) -> None:
    """Delete the rows of sessions, and record the sessions as forgotten."""
    remember = f"INSERT OR REPLACE INTO forgotten_sessions VALUES (:session, {_NOW})"
    with db.transaction():
        for session in sessions:
            db.execute(remember, {"session": session})
            for _, worker in hive_workers_of(db, session):
                end_worker(db, worker, "deleted_at")
            for table, (column, _) in TABLES.items():
                db.execute(f"DELETE FROM {table} WHERE {column} = :session", {"session": session})
            db.execute(TASKS_SQL, {"session": session})


def clean_pages(db: Database) -> None:
    """Rewrite the database without deleted data. Raise sqlite3.Error if the database is in use."""
    db.execute("PRAGMA auto_vacuum=INCREMENTAL", {})  # databases may be older than this setting
    db.execute("VACUUM", {})
    timeout = db.row("PRAGMA busy_timeout", {})
    deadline = time.monotonic() + CHECKPOINT_SECS
    tried_at = time.monotonic()
    while not db.truncate_log():
        has_waited = timeout and time.monotonic() - tried_at >= timeout[0] / 1000
        if has_waited or time.monotonic() > deadline:
            raise sqlite3.OperationalError(
                "another process reads the database: end it, then run `hivepipe forget` again"
            )
        # SQLite waits for a reader, but not while another process copies the log into the file.
        time.sleep(0.1)
        tried_at = time.monotonic()


def backups(path: Path) -> list[Path]:
    """Return the backups that migrations made of a database."""
    return sorted((path.parent / "backups").glob("*.db*"))
