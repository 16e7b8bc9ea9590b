"""What the store has taken in since the last look: one line per event, with what was kept of it."""

from collections.abc import Iterator
from typing import NamedTuple

from hivepipe.store.listings import Listings

# kind -> rows that are only added: (number, time, session, what)
_ADDED = {
    "prompt": """
        SELECT id AS number, created_at, session_id, prompt AS what FROM prompts
        WHERE id > :after AND (:session = '' OR session_id = :session) ORDER BY id
    """,
    "log": """
        SELECT id AS number, created_at, session_id,
          message || COALESCE(' ' || json_extract(data, '$.file_path'), '') AS what
        FROM session_logs
        WHERE id > :after AND (:session = '' OR session_id = :session) ORDER BY id
    """,
    "skill": """
        SELECT id AS number, created_at, session_id,
          skill || COALESCE(' ' || arguments, '') ||
            CASE WHEN success THEN '' ELSE ' (failed)' END AS what
        FROM skill_uses
        WHERE id > :after AND (:session = '' OR session_id = :session) ORDER BY id
    """,
}
# kind -> rows that change: each state of each counts once
_CHANGED = {
    "session": """
        SELECT id, updated_at AS created_at, id AS session_id,
          status || COALESCE(': ' || CASE WHEN status = 'ended' THEN end_reason END, '') AS what
        FROM sessions WHERE updated_at >= :since AND (:session = '' OR id = :session)
        ORDER BY updated_at
    """,
    "agent": """
        SELECT id, last_active AS created_at, session_id,
          COALESCE(type, '') || ' ' || status || COALESCE(': ' || name, '') AS what
        FROM agents WHERE last_active >= :since AND (:session = '' OR session_id = :session)
        ORDER BY last_active
    """,
}


class Line(NamedTuple):
    """One event, as it was kept."""

    created_at: str
    session_id: str
    kind: str
    what: str


class Tail:
    """Remembers what it has shown; every look takes a connection of its own."""

    def __init__(self, session: str = "") -> None:
        """`session`: of one alone."""
        self._session = session
        self._after = dict.fromkeys(_ADDED, 0)
        self._since = ""
        self._seen: dict[tuple[str, str], str] = {}

    def look(self, store: Listings) -> list[Line]:
        """Return what is new, in the order of the events."""
        return sorted(self._new(store))

    def _new(self, store: Listings) -> Iterator[Line]:
        since = self._since
        for kind, sql in _ADDED.items():
            asked = {"after": self._after[kind], "session": self._session}
            for row in store.rows(sql, asked):
                self._after[kind] = row["number"]
                yield self._line(kind, row)
        for kind, sql in _CHANGED.items():
            for row in store.rows(sql, {"since": since, "session": self._session}):
                key = (kind, row["id"])
                if self._seen.get(key) != row["what"]:
                    self._seen[key] = row["what"]
                    yield self._line(kind, row)
                self._since = max(self._since, row["created_at"] or "")

    @staticmethod
    def _line(kind: str, row: dict[str, object]) -> Line:
        texts = (row["created_at"] or "", row["session_id"] or "", kind, row["what"] or "")
        return Line(*map(str, texts))
