"""Times in the store's form: UTC with milliseconds, as texts that sort by time."""

import time
from datetime import UTC, datetime

AHEAD_SECS = 60


def stored_time(time_ns: int) -> str:
    """Return a time in the store's form: 2026-11-21T01:00:00.000Z."""
    secs, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(secs))}.{rest_ns // 1_000_000:03d}Z"


def in_store_form(at: datetime) -> str:
    """Return a time in the store's form; a time without a zone is local time.

    A local time that the clocks skip, such as a midnight, becomes the moment of the change. Raise
    ValueError or OverflowError if UTC's calendar lacks the time.
    """
    # Not `at.astimezone(UTC)`: it moves a skipped time to an hour before the change.
    utc = datetime.fromtimestamp(at.timestamp(), UTC)
    return f"{utc.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def ns_of(stored: str) -> int:
    """Return a time in the store's form in ns since 1970, or 0 if it is invalid."""
    try:
        return int(datetime.fromisoformat(stored).timestamp() * 1000) * 1_000_000
    except (ValueError, OverflowError):
        return 0


def age_secs(stored: str) -> float | None:
    """Return the age of a time in seconds: 0 for a future time, None for an invalid time."""
    try:
        return max(time.time() - datetime.fromisoformat(stored).timestamp(), 0.0)
    except ValueError:
        return None


def span(secs: float) -> str:
    """Return a duration in seconds, minutes or hours: the unit that gives at least 2."""
    if secs < 120:
        return f"{secs:.0f} s"
    return f"{secs / 60:.0f} min" if secs < 7200 else f"{secs / 3600:.0f} h"


def now() -> tuple[str, int]:
    """Return the current time in the store's form, and in ns."""
    now_ns = time.time_ns()
    return stored_time(now_ns), now_ns


def backoff_secs(first: float, failures: int, longest: float) -> float:
    """Return a delay that begins with `first` and doubles with each failure, up to `longest`."""
    return min(first * 2.0 ** min(failures, 64), longest)  # a larger power does not fit in a float


def ahead_ns() -> int:
    """Return the latest plausible time in ns; a later time shows that the clock was set back."""
    return time.time_ns() + AHEAD_SECS * 1_000_000_000
