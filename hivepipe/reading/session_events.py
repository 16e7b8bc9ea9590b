"""The events of a session, sorted by time."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from hivepipe.db.listings import Entry, Listings
from hivepipe.transcripts.lines import read_object

_CHECKPOINT = "Auto-checkpoint: "


class Event(NamedTuple):
    """One event of a time line; a field that does not apply is None."""

    at: str
    kind: str
    text: str
    agent_id: str | None = None
    file_path: str | None = None
    outcome: str | None = None
    error: str | None = None


class _Source(NamedTuple):
    """A table whose rows are events, and the SQL expression for the time of a row."""

    table: str
    time: str
    read: Callable[[str, Entry], Event]
    where: str = "session_id = :session"

    def newest(self, store: Listings, session: str, limit: int) -> list[Event]:
        sql = f"""
            SELECT *, {self.time} AS event_at FROM {self.table}
            WHERE {self.where} AND event_at <> '' ORDER BY event_at DESC, rowid DESC LIMIT :limit
        """
        rows = store.rows(sql, {"session": session, "limit": limit})
        return [self.read(row["event_at"], row) for row in reversed(rows)]

    def total(self, store: Listings, session: str) -> int:
        sql = f"""
            SELECT COUNT(*) AS number FROM {self.table} WHERE {self.where} AND {self.time} <> ''
        """
        return int(store.rows(sql, {"session": session})[0]["number"])


def events_of(store: Listings, session: str, limit: int) -> tuple[list[Event], int]:
    """Return a session's newest `limit` events, oldest first, and how many older events exist."""
    found = [event for source in _SOURCES for event in source.newest(store, session, limit)]
    found.sort(key=lambda event: (event.at, _ORDER.get(event.kind, 1)))
    total = sum(source.total(store, session) for source in _SOURCES)
    shown = found[-limit:]
    return shown, total - len(shown)


def _started(at: str, row: Entry) -> Event:
    return Event(at, "started", row["source"] or "")  # the row's model is the newest one


def _left(at: str, row: Entry) -> Event:
    if row["status"] == "ended":
        return Event(at, "ended", row["end_reason"] or "")
    return Event(at, "paused", "waits for the next prompt")


def _prompt(at: str, row: Entry) -> Event:
    return Event(at, "prompt", row["prompt"] or "[no text]")  # such as an image by an SDK


def _skill(at: str, row: Entry) -> Event:
    text = " ".join(filter(None, (row["skill"], row["arguments"])))
    kind = "skill" if row["kind"] == "tool" else "command"
    return Event(at, kind, text, outcome="completed" if row["success"] else "failed")


def _log(at: str, row: Entry) -> Event:
    message = row["message"] or ""
    if message.startswith(_CHECKPOINT):
        text = message.removeprefix(_CHECKPOINT)
        return Event(at, "checkpoint", text, file_path=file_of(row["data"]))
    level = row["log_level"].lower()
    return Event(at, "note" if level == "info" else level, message)


def file_of(data: str | None) -> str | None:
    """Return the file in the data of a checkpoint, or None."""
    fields = read_object((data or "").encode()) or {}  # another program may have written the data
    return str(fields.get("file_path") or "") or None


def _agent_began(at: str, row: Entry) -> Event:
    return Event(at, "agent", _called(row), agent_id=row["id"], outcome="started")


def _agent_ended(at: str, row: Entry) -> Event:
    outcome = _outcome(row)
    span = "" if outcome == "lost" else _span(row["began_at"] or row["created_at"], at)
    text = f"{_called(row)} ({span})" if span else _called(row)
    return Event(at, "agent", text, agent_id=row["id"], outcome=outcome, error=row.get("error"))


def _called(row: Entry) -> str:
    kind = row["type"] or "agent"
    return f"{kind}: {row['name']}" if row["name"] else kind


def _outcome(row: Entry) -> str:
    """Return an agent's outcome, or else the reason of its deletion, or else its status."""
    if row.get("outcome"):
        return str(row["outcome"])
    return str(row["deleted_reason"] or "deleted" if row["status"] == "deleted" else row["status"])


def _span(began: str | None, ended: str) -> str:
    """Return the running time of an agent as text, or "" if its start is unknown."""
    try:
        delta = datetime.fromisoformat(ended) - datetime.fromisoformat(began or "")
    except (ValueError, TypeError):  # the time is invalid, or has no time zone
        return ""
    secs = delta.total_seconds()
    return f"{secs:.0f} s" if secs < 120 else f"{secs / 60:.0f} min"


# Order of events with the same time: a session starts first and ends last.
_ORDER = {"started": 0, "paused": 2, "ended": 2}

_ENDED = "(status IN ('completed', 'failed', 'deleted') OR deleted_at IS NOT NULL)"
_SOURCES = (
    _Source("sessions", "created_at", _started, "id = :session"),
    _Source(
        "sessions",
        "CASE status WHEN 'ended' THEN ended_at WHEN 'paused' THEN paused_at END",
        _left,
        "id = :session",
    ),
    _Source("prompts", "created_at", _prompt),
    _Source("skill_uses", "created_at", _skill),
    _Source("session_logs", "created_at", _log),
    _Source("agents", "COALESCE(began_at, created_at)", _agent_began),
    _Source(
        "agents",
        "COALESCE(completed_at, deleted_at, last_active)",
        _agent_ended,
        f"session_id = :session AND {_ENDED}",
    ),
)
