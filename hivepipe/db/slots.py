"""Executed slots (time intervals) of periodic jobs, which show missing and repeated runs."""

from hivepipe.db.database import Database
from hivepipe.times import stored_time

LATEST = (1 << 63) - 1


def record_slot(db: Database, name: str, slot: int, executed_ns: int) -> None:
    """Record one execution of a slot. A second execution raises the slot's counter."""
    row = {"name": name, "slot": slot, "executed_at": stored_time(executed_ns)}
    db.insert("slots", row, "(name, slot) DO UPDATE SET executions = executions + 1")


def is_executed(db: Database, name: str, slot: int) -> bool:
    sql = "SELECT 1 FROM slots WHERE name = :name AND slot = :slot"
    return db.row(sql, {"name": name, "slot": slot}) is not None


def last_slot(db: Database, name: str, before: int = LATEST) -> int:
    """Return the latest executed slot of the job `name` before the slot `before`, or -1."""
    sql = "SELECT MAX(slot) FROM slots WHERE name = :name AND slot < :before"
    row = db.row(sql, {"name": name, "before": before})
    return int(row[0]) if row and row[0] is not None else -1
