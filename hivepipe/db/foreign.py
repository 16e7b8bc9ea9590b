"""Find databases of other programs, and rows that other programs wrote into hivepipe's."""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hivepipe.db.legacy_database import LegacyDatabase
from hivepipe.db.listings import Listings
from hivepipe.errors import StoreError

_WITHOUT_ZONE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
_SINCE = timedelta(days=2)  # times without a zone may be off by up to 14 hours
_FOREIGN_ROWS = """
    SELECT (SELECT count(*) FROM agents WHERE created_at GLOB :form AND created_at > :since)
      AS agents,
    (SELECT count(*) FROM sessions WHERE updated_at GLOB :form AND updated_at > :since)
      AS sessions
"""
_OWN = "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"


def is_foreign(path: Path) -> bool:
    """Tell whether another program made this database; return False if unknown or missing.

    A file that is empty or no database is not foreign: it may be hivepipe's, but damaged.
    """
    return _made_by_hivepipe(path) is False


def is_own(path: Path) -> bool:
    """Tell whether hivepipe made this database; return False if unknown or missing."""
    return _made_by_hivepipe(path) is True


def _made_by_hivepipe(path: Path) -> bool | None:
    # `os.path` returns False in a folder that the user cannot enter, where `Path` raises.
    if os.path.islink(path) or not os.path.isfile(path) or not os.path.getsize(path):
        return None
    if _main_file_is_own(path):
        return True
    try:
        with closing(LegacyDatabase(path)) as database:
            return database.is_of_hivepipe if database.has_tables else None
    except StoreError:
        return None


def _main_file_is_own(path: Path) -> bool:
    """Tell whether hivepipe made a database; read it as immutable, without its -wal and -shm."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return db.execute(_OWN).fetchone() is not None
    except sqlite3.Error:
        return False


def count_foreign_rows(store: Listings) -> dict[str, int]:
    """Return table -> rows that another program wrote in the last two days.

    Such rows are recognised by their times, which have no time zone.
    """
    since = (datetime.now(UTC) - _SINCE).strftime("%Y-%m-%d %H:%M:%S")
    (row,) = store.rows(_FOREIGN_ROWS, {"form": _WITHOUT_ZONE, "since": since})
    return {table: number for table, number in row.items() if number}
