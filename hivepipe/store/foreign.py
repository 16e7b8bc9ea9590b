"""Is a database hivepipe's own? Asked before anything is opened for writing."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hivepipe.errors import StoreError
from hivepipe.store.legacy_database import LegacyDatabase

_OWN = "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"


def is_foreign(path: Path) -> bool:
    """Did somebody else make this database? False where there is none, or nobody can tell.

    A file that is empty or no database is not foreign: it may be ours, damaged.
    """
    return _made_by_hivepipe(path) is False


def is_own(path: Path) -> bool:
    """Did hivepipe make this database? False where there is none, or nobody can tell."""
    return _made_by_hivepipe(path) is True


def _made_by_hivepipe(path: Path) -> bool | None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size == 0:
        return None
    if _is_own_at_first_sight(path):
        return True
    try:
        with closing(LegacyDatabase(path)) as database:
            return database.is_of_hivepipe if database.has_tables else None
    except StoreError:
        return None


def _is_own_at_first_sight(path: Path) -> bool:
    """Ask the file alone: `immutable` makes no file beside it, and reads none."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return db.execute(_OWN).fetchone() is not None
    except sqlite3.Error:
        return False
