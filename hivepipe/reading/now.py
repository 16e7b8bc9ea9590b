"""The open sessions of several homes."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from hivepipe.costs.price_table import prices_in_force
from hivepipe.db.listings import Entry, Listings
from hivepipe.errors import NothingRecordedError
from hivepipe.operations.liveness import with_activity
from hivepipe.reading.costs import bills
from hivepipe.reading.homes import KnownHome
from hivepipe.reading.latest import Latest, context_window, latest
from hivepipe.reading.session_name import name_of

_WORDS = {"active": "works", "paused": "idle", "waiting": "waits for you", "stalled": "silent"}
_OPEN = {*_WORDS.values(), "lost"}
_MORE = """
    SELECT id, CASE WHEN status IN ('active', 'paused') THEN transcript_path END AS transcript_path,
      CASE WHEN status IN ('active', 'paused') THEN (SELECT COUNT(*) FROM agents
        WHERE session_id = sessions.id AND completed_at IS NULL AND deleted_at IS NULL
        AND status IN ('spawned', 'running', 'active')) ELSE 0 END AS agents_at_work,
      COALESCE(open.number, 0) AS open_tasks
    FROM sessions LEFT JOIN (SELECT session_id, COUNT(*) AS number FROM tasks
      WHERE status = 'open' GROUP BY session_id) AS open ON open.session_id = sessions.id
    WHERE id IN (SELECT value FROM json_each(:sessions))
"""


def state_of(condition: str) -> str:
    """Return the page's name for a condition of a session."""
    return _WORDS.get(condition, condition)


@dataclass(frozen=True)
class OpenSession:
    """One session; `dollars` is None if none of its models has a price.

    `last_tool`, `context_tokens` and `cache_until` come from `Latest`.
    """

    home: str  # key of the home
    id: str
    project: str
    name: str
    title: str
    model: str
    client: str
    state: str
    waits_for: str
    last_active_at: str
    calls: int
    failed: int
    agents_at_work: int
    open_tasks: int = 0
    dollars: float | None = None
    last_tool: str = ""
    context_tokens: int | None = None
    context_window: int | None = None
    cache_until: str = ""

    @property
    def waits(self) -> bool:
        """Tell whether the session waits for the user."""
        return self.state == _WORDS["waiting"]

    @property
    def is_open(self) -> bool:
        """Tell whether the session has not ended."""
        return self.state in _OPEN


def open_sessions(homes: Iterable[KnownHome], with_ended: bool, limit: int) -> list[OpenSession]:
    """Return the open sessions, or with `with_ended` all sessions, at most `limit` per home.

    Sessions that wait for the user come first, then the sessions that were active last. A home
    without a database has no sessions. Raise StoreError if a database cannot be read.
    """
    found: list[OpenSession] = []
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            found += _of_home(known, store, with_ended, limit)
    return sorted(found, key=lambda each: (each.waits, each.last_active_at), reverse=True)


def _of_home(known: KnownHome, store: Listings, with_ended: bool, limit: int) -> list[OpenSession]:
    entries = with_activity(store, store.sessions(with_ended, limit))
    ids = [entry["id"] for entry in entries]
    more = {row["id"]: row for row in store.rows(_MORE, {"sessions": json.dumps(ids)})}
    dollars = _dollars(known.home, store, ids)
    about = store.titles(ids)
    return [
        _session(
            known,
            entry | more.get(entry["id"], {}),
            name_of(entry["id"], about.get(entry["id"])),
            dollars.get(entry["id"], 0.0),
        )
        for entry in entries
    ]


def _dollars(home: str, store: Listings, sessions: list[str]) -> dict[str, float | None]:
    prices = prices_in_force(home)
    added = bills(store, ("session",), sessions=sessions)
    return {session: bill.cost(prices).rounded for (session,), bill in added.of.items()}


def _session(known: KnownHome, entry: Entry, name: str, dollars: float | None) -> OpenSession:
    path = entry.get("transcript_path")
    end = latest(path) if path else Latest()
    fields = fields_of(entry)
    return OpenSession(
        home=known.key,
        project=entry["project"] or known.project,
        name=name,
        dollars=dollars,
        open_tasks=entry.get("open_tasks", 0),
        last_tool=end.tool,
        context_tokens=end.context_tokens,
        context_window=context_window(fields["model"], end.context_tokens),
        cache_until=end.cache_until,
        **fields,
    )


def fields_of(entry: Entry) -> Entry:
    """Return the fields of an OpenSession that a row of `Listings.sessions` contains."""
    return {
        "id": entry["id"],
        "title": entry["objective"] or "",
        "model": entry["model"] or "",
        "client": entry["client"],
        "state": state_of(str(entry["condition"])),
        "waits_for": str(entry["waits_for"] or ""),
        "last_active_at": entry["last_active_at"] or "",
        "calls": entry["calls"],
        "failed": entry["failed"],
        "agents_at_work": entry.get("agents_at_work", 0),
    }
