"""The open sessions of several homes, as of now."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from hivepipe.db.listings import Entry, Listings, listings
from hivepipe.db.location import database_path
from hivepipe.errors import NothingRecordedError
from hivepipe.operations.liveness import with_activity
from hivepipe.reading.homes import KnownHome
from hivepipe.reading.time_line import spent_in

_WORDS = {"active": "works", "paused": "idle", "waiting": "waits for you", "stalled": "silent"}
_AGENTS_AT_WORK = """
    SELECT session_id, COUNT(*) AS number FROM agents
    WHERE status IN ('spawned', 'running', 'active') AND completed_at IS NULL
      AND deleted_at IS NULL
    GROUP BY session_id
"""


@dataclass(frozen=True)
class OpenSession:
    """One session; `dollars` None: no message yet, or no model with a price."""

    home: str  # key
    id: str
    project: str
    title: str
    model: str
    client: str
    state: str
    waits_for: str
    last_active_at: str
    calls: int
    failed: int
    agents_at_work: int
    dollars: float | None


def open_sessions(homes: Iterable[KnownHome], with_ended: bool, limit: int) -> list[OpenSession]:
    """Return the open sessions, or all, last active first; at most `limit` of each home."""
    found: list[OpenSession] = []
    for known in homes:
        with suppress(NothingRecordedError), listings(database_path(known.home)) as store:
            found += _of_home(known, store, with_ended, limit)
    return sorted(found, key=lambda session: session.last_active_at, reverse=True)


def _of_home(known: KnownHome, store: Listings, with_ended: bool, limit: int) -> list[OpenSession]:
    at_work = {row["session_id"]: row["number"] for row in store.rows(_AGENTS_AT_WORK, {})}
    entries = with_activity(store, store.sessions(with_ended)[:limit])
    return [_session(known, store, entry, at_work.get(entry["id"], 0)) for entry in entries]


def _session(known: KnownHome, store: Listings, entry: Entry, at_work: int) -> OpenSession:
    state = str(entry["condition"])
    return OpenSession(
        home=known.key,
        id=entry["id"],
        project=entry["project"] or known.project,
        title=entry["objective"] or "",
        model=entry["model"] or "",
        client=entry["client"],
        state=_WORDS.get(state, state),
        waits_for=str(entry["waits_for"] or ""),
        last_active_at=entry["last_active_at"] or "",
        calls=entry["calls"],
        failed=entry["failed"],
        agents_at_work=at_work,
        dollars=spent_in(known.home, store, entry["id"]).dollars,
    )
