"""Times as the store writes them: UTC, milliseconds. As texts they sort as they are."""

import time
from datetime import datetime

AHEAD_SECS = 60


def stored_time(time_ns: int) -> str:
    """2026-11-21T01:00:00.000Z."""
    secs, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(secs))}.{rest_ns // 1_000_000:03d}Z"


def ns_of(stored: str) -> int:
    """Return a time that the store wrote in ns; 0 if it is none."""
    try:
        return int(datetime.fromisoformat(stored).timestamp() * 1000) * 1_000_000
    except (ValueError, OverflowError):
        return 0


def now() -> tuple[str, int]:
    """Return the time as the store writes it, and in ns."""
    now_ns = time.time_ns()
    return stored_time(now_ns), now_ns


def ahead_ns() -> int:
    """Return a time beyond which a stored one is of a clock that was set back since."""
    return time.time_ns() + AHEAD_SECS * 1_000_000_000
