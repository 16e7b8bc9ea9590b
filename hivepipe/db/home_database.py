"""Open the database of a home.

A database in a work tree and its home store the same random number (hivepipe.db.tree). If the
numbers differ, git may have replaced the database, and it is not opened.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from hivepipe.db.database import BUSY_TIMEOUT_SECS, Database
from hivepipe.db.location import database_path
from hivepipe.db.tree import prepare
from hivepipe.errors import StoreError, TreeError

# For workers, which try again later: they must not wait for a lock while they have other jobs.
SHORT_TIMEOUT_SECS = 0.1


def open_database(home: str, busy_timeout_secs: float = BUSY_TIMEOUT_SECS) -> Database:
    """Open a home's database, and create or migrate it if needed.

    Raise StoreError or sqlite3.Error if it cannot be used.
    """
    try:
        number = prepare(home)
    except (OSError, TreeError) as error:
        raise StoreError(str(error)) from error
    return Database(database_path(home), busy_timeout_secs, number)


@contextmanager
def opened(home: str) -> Iterator[Database]:
    """Open a home's database and close it after the block. Raise StoreError if SQLite fails."""
    try:
        with open_database(home) as db:
            yield db
    except sqlite3.Error as error:
        raise StoreError(f"{database_path(home)} cannot be used: {error}") from error
