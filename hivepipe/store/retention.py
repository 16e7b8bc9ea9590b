"""What the store keeps for how long, and the deletes when that time is over.

Keys are looked up beforehand, by whoever has the time, and deleted by key: no write waits for a
search.
"""

from hivepipe.store.database import Database

# table -> days
DAYS = {"applied": 90, "agents": 30, "slots": 7, "cleanups": 90, "alerts": 90, "activity": 90}

# What hive workers were and said, as long as the user's [retention] says.
HIVE = ("hive_statuses", "hive_runs", "hive_workers")
_IS_GONE = "NOT IN (SELECT id FROM hive_workers)"
_IS_OVER = "IN (SELECT id FROM hive_workers WHERE archived_at < :before OR deleted_at < :before)"

# table -> (key, which rows are over their time)
_OUTDATED = {
    "applied": ("job_id", "applied_at < :before"),
    "agents": ("id", "deleted_at < :before"),
    "slots": ("id", "executed_at < :before"),
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
    """Are rows of this table deleted when their time is over?"""
    return table in _OUTDATED


def outdated(db: Database, table: str, before: str, most: int) -> list[str | int]:
    """Return the keys of what is older than a UTC time, at most so many."""
    key, condition = _OUTDATED[table]
    sql = f"SELECT {key} AS key FROM {table} WHERE {condition} LIMIT :most"
    return [row["key"] for row in db.rows(sql, {"before": before, "most": most})]


def delete(db: Database, table: str, before: str, keys: list[str | int]) -> None:
    """Delete these rows, but those that are not over their time any more."""
    key, condition = _OUTDATED[table]
    sql = f"DELETE FROM {table} WHERE {key} = :key AND {condition}"
    for each in keys:
        db.execute(sql, {"key": each, "before": before})
