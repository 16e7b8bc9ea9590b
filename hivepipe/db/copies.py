"""Copy the database while it is in use, and check a copy before it is restored."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from hivepipe.db.listings import listings
from hivepipe.db.tree import refuse_tracked
from hivepipe.errors import StoreError
from hivepipe.files.sqlite_file import refuse_special_file


def copy_to(path: Path, target: Path) -> bool:
    """Copy a database, with mode 0600; return False if there is none.

    Raise StoreError if it cannot be copied, and OSError if the copy cannot be created.
    """
    if not path.exists():
        return False
    refuse_tracked(path)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        refuse_special_file(path)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as db:
            db.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be copied: {error}") from error
    return True


def error_of(path: Path) -> str:
    """Return the fault of a copy of the database, or "" if the copy is intact or missing."""
    if not path.exists():
        return ""
    try:
        with listings(path) as store:
            return store.trouble() or store.made_by_newer()
    except StoreError as error:
        return str(error)
