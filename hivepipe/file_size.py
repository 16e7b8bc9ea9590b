"""The limit on the size of a file (`ulimit -f`): beyond it a write fails.

SQLite then says "disk I/O error", of a database that is whole.
"""

import resource

ENOUGH_BYTES = 1_000_000_000


def small_limit() -> int | None:
    """Return this process's limit in bytes, if a database could grow beyond it; else None."""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if soft == resource.RLIM_INFINITY or soft >= ENOUGH_BYTES else soft


def raise_limit() -> None:
    """Take what the limit of the account allows, for this process and those it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def with_limit(reason: str) -> str:
    """Return why a write failed, with the limit if there is a small one."""
    limit = small_limit()
    if limit is None:
        return reason
    return f"{reason}; no file may grow beyond {limit:,} bytes here (ulimit -f)"
