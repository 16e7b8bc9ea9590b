"""Retention: how long each table keeps its rows, and their deletion after that time.

Keys of outdated rows are looked up first. Rows are then deleted by key, so that no write
transaction has to search.
"""

from hivepipe.db.database import Database

# table -> days
DAYS = {"applied": 90, "agents": 30, "slots": 7, "cleanups": 90, "alerts": 90, "activity": 90}

# Data of hive workers, kept as long as the user's [retention] requires.
HIVE = ("hive_statuses", "hive_runs", "hive_workers")
_IS_GONE = "NOT IN (SELECT id FROM hive_workers)"
_IS_OVER = "IN (SELECT id FROM hive_workers WHERE archived_at < :before OR deleted_at < :before)"

_NEWEST_SLOT = "(SELECT max(slot) FROM slots AS newest WHERE newest.name = slots.name)"

# table -> (key, condition of outdated rows)
_OUTDATED = {
    "applied": ("job_id", "applied_at < :before"),
    "agents": ("id", "deleted_at < :before"),
    # The newest slot stays, because the next deletion of files depends on its time.
    "slots": ("id", f"executed_at < :before AND slot < {_NEWEST_SLOT}"),
    "cleanups": ("id", "created_at < :before"),
    "alerts": ("id", "ended_at < :before"),
    "activity": ("rowid", "last_active_at < :before"),
    "hive_statuses": (
        "rowid",
        f"changed_at < :before AND (worker_id {_IS_OVER} OR worker_id {_IS_GONE})",
    ),
    "hive_runs": (
        "rowid",
        f"(worker_id {_IS_OVER} OR (started_at < :before AND worker_id {_IS_GONE}))",
    ),
    "hive_workers": ("id", "(archived_at < :before OR deleted_at < :before)"),
}


def is_pruned(table: str) -> bool:
    """Tell whether outdated rows of this table are deleted."""
    return table in _OUTDATED


def outdated(db: Database, table: str, before: str, most: int) -> list[str | int]:
    """Return the keys of at most `most` rows that are older than a UTC time."""
    key, condition = _OUTDATED[table]
    sql = f"SELECT {key} AS key FROM {table} WHERE {condition} LIMIT :most"
    return [row["key"] for row in db.rows(sql, {"before": before, "most": most})]


def delete(db: Database, table: str, before: str, keys: list[str | int]) -> None:
    """Delete the rows with these keys, except rows that are no longer outdated."""
    key, condition = _OUTDATED[table]
    sql = f"DELETE FROM {table} WHERE {key} = :key AND {condition}"
    for each in keys:
        db.execute(sql, {"key": each, "before": before})
