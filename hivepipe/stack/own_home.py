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
    return bool(_MARKS & set(os.listdir(home))) or is_own(Path(home, "hive.db"))
