"""When the row of an agent expires."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hivepipe.jobs.agent_expiry import judge, moment

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def ago(**span: float) -> str:
    return (NOW - timedelta(**span)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def agent(lifecycle: object = None, **columns: Any) -> dict[str, Any]:
    """An expired ephemeral agent, spawned two hours ago in an open session."""
    ephemeral = {
        "type": "ephemeral",
        "ttl": 3600,
        "expires_at": ago(hours=1),
        "cleanup_trigger": "task_complete",
        "protected": False,
    }
    stored = ephemeral | lifecycle if isinstance(lifecycle, dict) else lifecycle or ephemeral
    return {
        "status": "spawned",
        "metadata": json.dumps({"model": "default", "lifecycle": stored}, indent=2),
        "created_at": ago(hours=2),
        "began_at": None,
        "session_id": "session-1",
        "session_status": "active",
        **columns,
    }


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (agent(), "expired"),
        (agent(session_status="paused"), "expired"),
        (agent(status="completed"), "completed"),
        (agent(status="failed"), "completed"),
        (agent(session_status="ended"), "orphaned"),
        (agent(session_status=None), "orphaned"),
        (agent(session_status="ended", status="running", began_at=ago(hours=2)), "orphaned"),
        (agent(status="completed", metadata=None), "completed"),
        (agent(created_at=ago(minutes=5), status="completed"), "completed"),
        (agent({"expires_at": "2026-11-21T12:00:00+00:00"}), "expired"),
        (agent({"expires_at": "2026-11-21T13:59:59+02:00"}), "expired"),  # 11:59:59 UTC
        (agent({"expires_at": "2026-11-21 11:00:00"}), "expired"),
        *((agent({"protected": word}), "expired") for word in (0, "", "0", "False", "no", None)),
    ],
)
def test_a_row_is_removed(row: dict[str, Any], reason: str) -> None:
    assert judge(row, NOW) == (True, reason)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (agent({"type": "permanent"}, status="completed"), "permanent"),
        (agent("permanent", session_status=None), "permanent"),
        (agent({"protected": True}, session_status="ended"), "protected"),
        (agent({"protected": 1}, status="failed"), "protected"),
        *((agent({"protected": word}), "protected") for word in ("true", "TRUE", "on", "y", 2)),
        (agent(metadata='{"protected": 1, "lifecycle": {"type": "x"}}'), "protected"),
        (agent(created_at=ago(seconds=1), status="completed"), "fresh"),
        (agent(created_at=ago(seconds=299), session_status=None), "fresh"),
        (agent(created_at=None, status="completed"), "fresh"),
        (agent(created_at="yesterday", status="completed"), "fresh"),
        (agent(metadata="{", status="completed"), "unreadable"),
        (agent(metadata="[1]", session_status=None), "unreadable"),
        (agent({"expires_at": "2026-11-21T12:00:01Z"}), "at work"),
        (agent({"expires_at": "2026-11-21T11:30:00-01:00"}), "at work"),  # 12:30 UTC
        (agent({"expires_at": "soon"}), "at work"),
        (agent({"expires_at": None}), "at work"),
        (agent(began_at=ago(hours=2)), "at work"),  # in the background, for hours
        (agent(status="running"), "at work"),
        (agent(session_id=None, session_status=None, metadata=None), "at work"),
    ],
)
def test_a_row_is_kept(row: dict[str, Any], reason: str) -> None:
    assert judge(row, NOW) == (False, reason)


def test_an_invalid_time_is_returned_as_none() -> None:
    assert {moment(text) for text in (None, 3, "", "soon", "2026-13-01")} == {None}
