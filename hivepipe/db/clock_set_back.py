"""Correct the times that order events after the clock was set back.

Otherwise a session would ignore new events until the clock reaches the old times.
"""

from hivepipe.db.database import Database

_ORDERING = {
    "sessions": (
        *("state_time_ns", "checkpoint_time_ns", "last_end_ns", "process_end_ns"),
        *("concluded_ns", "concluded_before_ns"),
    ),
    "instance_sessions": ("assigned_time_ns", "detached_time_ns"),
    "tasks": ("state_time_ns", "progress_time_ns", "assigned_time_ns"),
    "identity_baselines": ("time_ns",),
}


def move_back(db: Database, now_ns: int, back_ns: int) -> int:
    """Move times in the future back by `back_ns`, in one transaction; return the number of rows."""
    moved = 0
    with db.transaction():
        for table, columns in _ORDERING.items():
            earlier = ", ".join(f"{name} = {_earlier(name)}" for name in columns)
            is_ahead = " OR ".join(f"{name} > :now" for name in columns)
            sql = f"UPDATE {table} SET {earlier} WHERE {is_ahead}"
            moved += db.execute(sql, {"now": now_ns, "back": back_ns})
    return moved


def _earlier(column: str) -> str:
    return f"CASE WHEN {column} > :now THEN {column} - :back ELSE {column} END"
