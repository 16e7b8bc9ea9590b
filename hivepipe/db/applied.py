"""The ids of applied jobs and of imports, and counters of jobs without effect."""

from hivepipe.db.database import Database
from hivepipe.jobs.origin import Origin
from hivepipe.times import now


def mark_applied(db: Database, job: Origin) -> bool:
    """Record a job as applied, in the transaction of its effect; return False if it already was."""
    return db.insert("applied", {"job_id": job.id, "applied_at": now()[0]})


def is_applied(db: Database, job_id: str) -> bool:
    return db.row("SELECT 1 FROM applied WHERE job_id = :job", {"job": job_id}) is not None


def mark_imported(db: Database, id: str) -> None:
    """Record for ever, in the caller's transaction, that the content with this id was imported."""
    db.insert("imported", {"id": id, "imported_at": now()[0]})


def is_imported(db: Database, id: str) -> bool:
    """Tell whether the content with this id was imported. 1.0.0 recorded imports in `applied`."""
    found = db.row("SELECT 1 FROM imported WHERE id = :id", {"id": id})
    return found is not None or is_applied(db, id)


def count(db: Database, name: str, number: int) -> None:
    """Add `number` to a counter that `hivepipe status` shows."""
    sum = "(name) DO UPDATE SET value = counters.value + excluded.value"
    db.insert("counters", {"name": name, "value": number}, sum)


def count_effectless(db: Database, what: str, job: Origin) -> None:
    """Count a job without effect. `what` is the reason: no_session, zero_rows or forgotten."""
    count(db, f"{what}:{job.operation}", 1)
