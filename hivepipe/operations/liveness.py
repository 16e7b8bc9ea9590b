"""Session health: the condition of a session by its last event, its process and the time.

    waiting    a question to a person is not answered
    stalled    a turn is open, no call runs, and there was no activity for 15 minutes
               (`stalled_secs`)
    lost       the process has ended, or is unknown and there was no activity for 30 minutes
               (`lost_secs`)

A session that waits for a tool, a person or background work is not stalled, and is lost only if its
process has ended. No event
reports that a person interrupted a turn (Esc, No), answered a question, or gave no prompt yet. For
these cases the status of Claude Code's process is used.
"""

from collections.abc import Collection

from hivepipe import settings
from hivepipe.db.activity import activities, processes_of
from hivepipe.db.listings import Entry, Listings
from hivepipe.hook.alive import liveness_on
from hivepipe.hook.instance import this_machine
from hivepipe.operations.client_status import (
    BUSY,
    IDLE,
    SHELL,
    WAITING,
    ClientStatus,
    client_status,
)
from hivepipe.times import age_secs, stored_time

_OPEN = ("active", "paused")
_NO_ACTIVITY = {
    **dict.fromkeys(("calls", "failed", "denied", "warned"), 0),
    **dict.fromkeys(("task_id", "profile", "waits_for")),
}


def with_activity(store: Listings, sessions: Collection[Entry]) -> list[Entry]:
    """Return the sessions with condition, activity, task and profile, last active first."""
    of = activities(store, [session["id"] for session in sessions])
    found, here = [], this_machine()
    for session in sessions:
        is_open = session["status"] in _OPEN
        processes = processes_of(store, session["id"]) if is_open else []
        alive = _any_lives(processes, here)
        client = _status_by_client(session, processes) if alive else None
        own = of.get(session["id"], {})
        found.append(with_own_activity(session, own, alive=alive, client=client))
    return sorted(found, key=lambda entry: str(entry["last_active_at"]), reverse=True)


def with_own_activity(
    session: Entry, own: Entry, *, alive: bool | None, client: ClientStatus | None = None
) -> Entry:
    """Return a session with condition and activity; `own` is its entry in `activities`."""
    last = max(session["updated_at"] or "", own.get("last_active_at", ""))
    entry = {name: own.get(name, nothing) for name, nothing in _NO_ACTIVITY.items()}
    state = condition(
        session["status"],
        last,
        waits=not own.get("turn_is_open") or bool(own.get("open_calls")),
        alive=alive,
        asks=bool(entry["waits_for"]),
        turn_is_open=bool(own.get("turn_is_open")),
        client=client,
    )
    entry["waits_for"] = _waits_for(state, client, entry["waits_for"])
    return {**session, **entry, "last_active_at": last, "condition": state}


def condition(
    status: str,
    last_active_at: str,
    *,
    waits: bool,
    alive: bool | None,
    asks: bool = False,
    turn_is_open: bool = True,
    client: ClientStatus | None = None,
) -> str:
    """Return a session's condition: paused, waiting, stalled or lost (see the module), or `status`.

    `waits` is True if the session waits for a tool or the next prompt. `asks` is True if the last
    event was a question to a person. `alive` is None if it is unknown.
    """
    if status not in _OPEN:
        return status
    if alive is False:
        return "lost"
    if status == "paused":
        return status
    reported = client.status if client else ""
    has_news = client is not None and last_active_at < stored_time(client.at_ns)
    # An idle client has no open question: 2.1.197 reports a question after the person has left it.
    if reported in (IDLE, SHELL) and turn_is_open and (has_news or asks):
        return "paused"
    if reported == IDLE and not turn_is_open:  # it was started or resumed, and got no prompt yet
        return "paused"
    if reported == WAITING or (asks and not (reported == BUSY and has_news)):
        return "waiting"
    if waits or not last_active_at:
        return status
    silence = age_secs(last_active_at) or 0.0  # the time of an imported session may be any text
    if silence >= settings.number("HIVEPIPE_LOST_SECS") and not alive:
        return "lost"
    return "stalled" if silence >= settings.number("HIVEPIPE_STALLED_SECS") else status


def _waits_for(state: str, client: ClientStatus | None, question: object) -> object:
    """Return what a session in state `waiting` needs from a person, or None in other states."""
    return ((client and client.waits_for) or question or None) if state == "waiting" else None


def _status_by_client(session: Entry, processes: list[Entry]) -> ClientStatus | None:
    """Return the latest status that a session's processes report, or None."""
    found = [
        client_status(
            each["pid"], each["pid_started"] or "", session["id"], session.get("transcript_path")
        )
        for each in processes
    ]
    return max(filter(None, found), key=lambda status: status.at_ns, default=None)


def _any_lives(processes: list[Entry], here: tuple[str, str, str]) -> bool | None:
    """Tell whether any process of a session lives.

    Return None if there is no process, or if one is unknown or not visible here.
    """
    found = [_liveness(each, here) for each in processes]
    return None if None in found or not found else any(found)


def _liveness(process: Entry, here: tuple[str, str, str]) -> bool | None:
    machine = (process["host"] or "", process["boot"] or "", process["pid_space"] or "")
    pid, started = process["pid"] or 0, process["pid_started"] or ""
    return liveness_on(machine, pid, started, here).lives if pid else None
