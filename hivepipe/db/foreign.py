"""Distinguish hivepipe's databases from others, without opening any for writing."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hivepipe.db.legacy_database import LegacyDatabase
from hivepipe.errors import StoreError

_OWN = "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"


def is_foreign(path: Path) -> bool:
    """Tell whether another program made this database; False if it is unknown or missing.

    A file that is empty or not a database is not foreign: it may be our damaged database.
    """
    return _made_by_hivepipe(path) is False


def is_own(path: Path) -> bool:
    """Tell whether hivepipe made this database; False if it is unknown or missing."""
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
    """Check the file only. With `immutable` SQLite creates and reads no -wal and -shm file."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return db.execute(_OWN).fetchone() is not None
    except sqlite3.Error:
        return False
