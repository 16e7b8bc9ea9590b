"""How a session is: what its last event said, held against the clock and its process.

Stalled: a turn is open, no call runs, and nothing was heard for 15 minutes (`stalled_secs`). Lost:
nothing for 30 (`lost_secs`), or its process is gone. Whoever waits for a tool, for a person's
permission or for background work is neither.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime

from hivepipe import settings
from hivepipe.intake.fate import lives
from hivepipe.store.activity import activity_of, processes_of
from hivepipe.store.listings import Entry, Listings

_NO_ACTIVITY = {"calls": 0, "failed": 0, "denied": 0, "warned": 0, "task_id": None, "profile": None}


def with_activity(store: Listings, sessions: Iterable[Entry]) -> list[Entry]:
    """Add to each session its condition, its last sign of life, its calls, its task and profile."""
    found = []
    for session in sessions:
        own = activity_of(store, session["id"])
        last = max(session["updated_at"] or "", own.get("last_active_at", ""))
        alive = _any_lives(processes_of(store, session["id"]))
        entry = {name: own.get(name, nothing) for name, nothing in _NO_ACTIVITY.items()}
        state = condition(
            session["status"],
            last,
            waits=not own.get("turn_is_open") or bool(own.get("open_calls")),
            alive=alive,
        )
        found.append({**session, **entry, "last_active_at": last, "condition": state})
    return sorted(found, key=lambda entry: str(entry["last_active_at"]), reverse=True)


def condition(status: str, last_active_at: str, *, waits: bool, alive: bool | None) -> str:
    """Return the status of a session, or stalled, or lost.

    `waits`: for a tool or for a person; `alive` None: nobody knows.
    """
    if status not in ("active", "paused"):
        return status
    if alive is False:
        return "lost"
    if status == "paused" or waits or not last_active_at:
        return status
    silence = (datetime.now(UTC) - datetime.fromisoformat(last_active_at)).total_seconds()
    if silence >= settings.lost_secs():
        return "lost"
    return "stalled" if silence >= settings.stalled_secs() else status


def _any_lives(processes: list[Entry]) -> bool | None:
    """Does any of these processes live? None: none of them is known and of this machine."""
    here = os.uname().nodename
    known = [entry for entry in processes if entry["host"] == here and entry["pid"]]
    if not known or len(known) < len(processes):
        return None
    return any(lives(entry["pid"], entry["pid_started"] or "") for entry in known)
