"""The limit on the size of a file (`ulimit -f`): writes beyond it fail.

SQLite then reports "disk I/O error" for an intact database.
"""

import os
import resource
from errno import EFBIG

ENOUGH_BYTES = 1_000_000_000
_HIT = (os.strerror(EFBIG), "disk I/O error")  # the messages of the system and of SQLite


def small_limit() -> int | None:
    """Return this process's file size limit in bytes if a database may need more, else None."""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if soft == resource.RLIM_INFINITY or soft >= ENOUGH_BYTES else soft


def with_limit_if_hit(message: str) -> str:
    """Return a failed command's message.

    If the file size limit caused the failure, the limit is added to the message.
    """
    is_hit = any(reason in message for reason in _HIT) and "ulimit -f" not in message
    return with_limit(message) if is_hit else message


def raise_limit() -> None:
    """Raise the file size limit to its hard limit, for this process and its children."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def with_limit(reason: str) -> str:
    """Return the reason of a failed write, with the file size limit if the limit is small."""
    limit = small_limit()
    if limit is None:
        return reason
    return f"{reason}; no file may grow beyond {limit:,} bytes here (ulimit -f)"
