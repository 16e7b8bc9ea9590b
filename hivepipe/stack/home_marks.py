"""Tell whether a folder is or was a home of hivepipe, so that files in it may be ours."""

import os
from pathlib import Path

from hivepipe.db.foreign import is_own

# Names that never occur in the predecessor's home.
_MARKS = {
    *("appendonly.aof", "appendonlydir", "redis.lock"),
    *("hives", "kernel", "manifest.db", "spool"),
}


def is_marked(home: str) -> bool:
    """Tell whether a folder contains our database or a file that only hivepipe makes.

    Return False for a link.
    """
    if os.path.islink(home) or not os.path.isdir(home):
        return False
    return is_whole(home) or is_own(Path(home, "hive.db"))


def is_whole(home: str) -> bool:
    """Tell whether a folder is a whole home and not only the data in a work tree."""
    return os.path.isdir(home) and bool(_MARKS & set(os.listdir(home)))
