"""New rows since the last poll: one line per event."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from hivepipe.db.listings import Listings
from hivepipe.times import stored_time

# kind -> table of rows that do not change, and SQL of a row's text
_ADDED = {
    "prompt": ("prompts", "prompt"),
    "log": (
        "session_logs",
        """
        message || COALESCE(' ' ||
          CASE WHEN json_valid(data) THEN json_extract(data, '$.file_path') END, '')
        """,
    ),
    "skill": (
        "skill_uses",
        """
        skill || COALESCE(' ' || arguments, '') || CASE WHEN success THEN '' ELSE ' (failed)' END
        """,
    ),
}
# kind -> query of rows that change; each state of a row is one line
_CHANGED = {
    "session": """
        SELECT id, updated_at AS created_at, id AS session_id,
          status || COALESCE(': ' || CASE WHEN status = 'ended' THEN end_reason END, '') AS what
        FROM sessions WHERE updated_at >= :since AND (:session = '' OR id = :session)
    """,
    "agent": """
        SELECT id, last_active AS created_at, session_id,
          COALESCE(type, '') || ' ' || status || COALESCE(': ' || name, '') AS what
        FROM agents WHERE last_active >= :since AND (:session = '' OR session_id = :session)
    """,
}
NO_LIMIT = -1
# A poll reads the changes of the last minute. Some changes are stored later, because their events
# were in the spool or the clock was set back. So a few polls read the changes of a week.
_RECENT_NS = 60 * 10**9
_LATE_NS = 7 * 24 * 60 * _RECENT_NS
LOOK_BACK_EVERY = 20  # polls between two reads of a week's changes


class Line(NamedTuple):
    """One stored event, as a line of output."""

    created_at: str
    session_id: str
    kind: str
    what: str


class Tail:
    """A poller for new rows that remembers the returned rows. Each poll is given a connection."""

    def __init__(self, session: str = "", first: int = 0) -> None:
        """Follow all sessions or one; `first` limits the rows of each kind in the first poll."""
        self._session = session
        self._most = max(first, 1)  # at least one row, which shows where the next poll begins
        # id and time of the last row: the id of a deleted row (a scheduled prompt) is used again
        self._after: dict[str, tuple[int, str | None]] = dict.fromkeys(_ADDED, (0, None))
        self._seen: dict[tuple[str, str], str] = {}
        self._polls = -1

    def poll(self, store: Listings) -> list[Line]:
        """Return the new lines in the order of the events."""
        found = sorted(self._new(store))
        self._most = NO_LIMIT
        return found

    def _new(self, store: Listings) -> Iterator[Line]:
        parameters = {"since": self._since(), "session": self._session, "most": self._most}
        for kind, (table, text) in _ADDED.items():
            sql = f"""
                SELECT id AS number, created_at, session_id, {text} AS what FROM {table}
                WHERE id >= :after AND (id > :after OR created_at IS NOT :at)
                  AND (:session = '' OR session_id = :session)
                ORDER BY id DESC LIMIT :most
            """
            after, at = self._after[kind]
            rows = store.rows(sql, {**parameters, "after": after, "at": at})
            for row in rows:
                yield self._line(kind, row)
            if rows:
                self._after[kind] = (rows[0]["number"], rows[0]["created_at"])
        for kind, sql in _CHANGED.items():
            since = {"since": self._first_of(store, sql, parameters)}
            for row in store.rows(sql, {**parameters, **since}):
                key = (kind, row["id"])
                if self._seen.get(key) != row["what"]:
                    self._seen[key] = row["what"]
                    yield self._line(kind, row)

    def _first_of(self, store: Listings, sql: str, parameters: dict[str, Any]) -> str:
        """Return `since`, or in the first poll an earlier time with the newest `most` changes."""
        since = str(parameters["since"])
        if self._polls:
            return since
        newest = f"SELECT created_at FROM ({sql}) ORDER BY created_at DESC LIMIT :most"
        (row,) = store.rows(
            f"SELECT MIN(created_at) AS first FROM ({newest})", {**parameters, "since": ""}
        )
        return min(since, row["first"] or since)

    def _since(self) -> str:
        """Count the poll, and return the time from which it reads changes.

        The first poll, and then every LOOK_BACK_EVERY-th, goes further back.
        """
        self._polls += 1
        looks_back = self._polls % LOOK_BACK_EVERY == 0
        return stored_time(time.time_ns() - (_LATE_NS if looks_back else _RECENT_NS))

    @staticmethod
    def _line(kind: str, row: dict[str, object]) -> Line:
        texts = (row["created_at"] or "", row["session_id"] or "", kind, row["what"] or "")
        return Line(*map(str, texts))
