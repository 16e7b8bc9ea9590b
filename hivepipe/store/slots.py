"""Which slot of what runs by the clock was executed, and when: how the intervals are seen."""

from hivepipe.periodic import name_and_slot
from hivepipe.store.database import Database
from hivepipe.stored_times import stored_time


def record_slot(db: Database, name: str, slot: int, executed_ns: int) -> None:
    """Record one execution; a second one of the same slot would be seen."""
    sql = """
        INSERT INTO slots (name, slot, executed_at) VALUES (:name, :slot, :time)
        ON CONFLICT (name, slot) DO UPDATE SET executions = executions + 1
    """
    db.execute(sql, {"name": name, "slot": slot, "time": stored_time(executed_ns)})


def is_executed(db: Database, job_id: str) -> bool:
    """Was the slot that this id names executed?"""
    name, slot = name_and_slot(job_id) or ("", 0)
    sql = "SELECT 1 FROM slots WHERE name = :name AND slot = :slot"
    return db.row(sql, {"name": name, "slot": slot}) is not None
