"""Executed slots of periodic jobs, which show missing and repeated runs."""

from hivepipe.db.database import Database
from hivepipe.times import stored_time


def record_slot(db: Database, name: str, slot: int, executed_ns: int) -> None:
    """Record one execution; a repeated execution of a slot is counted."""
    sql = """
        INSERT INTO slots (name, slot, executed_at) VALUES (:name, :slot, :time)
        ON CONFLICT (name, slot) DO UPDATE SET executions = executions + 1
    """
    db.execute(sql, {"name": name, "slot": slot, "time": stored_time(executed_ns)})


def is_executed(db: Database, name: str, slot: int) -> bool:
    """Tell whether this slot was executed."""
    sql = "SELECT 1 FROM slots WHERE name = :name AND slot = :slot"
    return db.row(sql, {"name": name, "slot": slot}) is not None


def last_slot(db: Database, name: str) -> int:
    """Return the latest executed slot of a row, or -1."""
    row = db.row("SELECT MAX(slot) FROM slots WHERE name = :name", {"name": name})
    return int(row[0]) if row and row[0] is not None else -1
