"""Decide which agents have expired. All functions are pure, and all times are UTC.

    completed   the agent finished or failed
    orphaned    the agent did not finish, and its session has ended
    expired     the time to live has passed, and nothing shows that the agent works

An agent stays if it is protected, permanent, younger than five minutes, or has unreadable metadata.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

FRESH = timedelta(minutes=5)
_NO = ("", "0", "false", "no", "none", "null")  # any other value protects


class Verdict(NamedTuple):
    """The decision whether to remove an agent's row, and its reason."""

    is_outdated: bool
    reason: str


def judge(agent: Mapping[str, Any], now: datetime) -> Verdict:
    """Return the verdict on a row of `agents` that also has `session_status` (None if unknown)."""
    metadata = metadata_of(agent)
    if metadata is None:
        return Verdict(False, "unreadable")
    value = metadata.get("lifecycle")
    lifecycle: Mapping[str, Any] = value if isinstance(value, dict) else {"type": value}
    if "permanent" in (lifecycle.get("type"), metadata.get("type")):
        return Verdict(False, "permanent")
    if any(str(each.get("protected", "")).lower() not in _NO for each in (lifecycle, metadata)):
        return Verdict(False, "protected")
    created_at = moment(agent["created_at"])
    if created_at is None or now - created_at < FRESH:
        return Verdict(False, "fresh")
    return _of_its_time(agent, moment(lifecycle.get("expires_at")), now)


def _of_its_time(agent: Mapping[str, Any], expires_at: datetime | None, now: datetime) -> Verdict:
    if agent["status"] in ("completed", "failed"):
        return Verdict(True, "completed")
    if agent["session_id"] and agent["session_status"] not in ("active", "paused", "inferred"):
        return Verdict(True, "orphaned")
    # Claude Code reported its start but no end: it may work for hours without an event.
    if agent["status"] == "running" or agent["began_at"]:
        return Verdict(False, "at work")
    if expires_at is not None and expires_at <= now:
        return Verdict(True, "expired")
    return Verdict(False, "at work")


def metadata_of(agent: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parsed metadata of a row of `agents`, or None if they are invalid."""
    try:
        found = orjson.loads(str(agent["metadata"] or "{}"))
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def moment(text: object) -> datetime | None:
    """Return a stored time, or None if it is invalid. A time without a zone is UTC."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
