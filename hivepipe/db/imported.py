"""A permanent record of imports, so that importing the same content again changes nothing."""

from hivepipe.db.applied import is_applied
from hivepipe.db.database import Database
from hivepipe.times import now


def is_imported(db: Database, id: str) -> bool:
    """Tell whether the content was imported. 1.0.0 recorded imports only in `applied`."""
    found = db.row("SELECT 1 FROM imported WHERE id = :id", {"id": id})
    return found is not None or is_applied(db, id)


def mark_imported(db: Database, id: str) -> None:
    """Record an import, in the transaction of its effect."""
    db.insert("imported", {"id": id, "imported_at": now()[0]})
