"""Did hivepipe ever work in a folder? In any other one no file is its own, whatever its name."""

import os
from pathlib import Path

from hivepipe.store.foreign import is_own

# Names that the predecessor's home never has.
_MARKS = {
    "appendonly.aof",
    "appendonlydir",
    "hives",
    "kernel",
    "manifest.db",
    "redis.lock",
    "spool",
}


def is_marked(home: str) -> bool:
    """Does hivepipe's own mark lie in this folder? A link is never a home of ours."""
    if os.path.islink(home) or not os.path.isdir(home):
        return False
    return is_whole(home) or is_own(Path(home, "hive.db"))


def is_whole(home: str) -> bool:
    """Does more than a database lie there? So it is in a home, not in a tree of one."""
    return os.path.isdir(home) and bool(_MARKS & set(os.listdir(home)))
