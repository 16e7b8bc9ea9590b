"""Show times of the store on pages: in local time, or as the time that is left."""

from datetime import datetime

from hivepipe.times import now, ns_of


def local_time(text: str | None) -> str:
    """Return a time of the store as local time to the second, or unchanged if it is invalid."""
    return _written(text, "%Y-%m-%d %H:%M:%S")


def time_of_day(text: str | None) -> str:
    """Return the local time of day of a time of the store; return an invalid time unchanged."""
    return _written(text, "%H:%M:%S")


def time_left(text: str) -> str:
    """Return the time until a time of the store as text: minutes, seconds, or "cold" after it."""
    secs = (ns_of(text) - now()[1]) / 10**9
    return (
        f"{secs / 60:.0f} min left" if secs >= 60 else f"{secs:.0f} s left" if secs > 0 else "cold"
    )


def _written(text: str | None, form: str) -> str:
    try:
        return f"{datetime.fromisoformat(text or '').astimezone():{form}}"
    except (ValueError, OverflowError):
        return text or ""
