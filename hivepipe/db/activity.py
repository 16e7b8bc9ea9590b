"""Tool call totals and the last activity of each session.

If Redis loses its data, Redis counts a session from 0 again, and the session gets another row. The
total of a session is the sum of its rows. A row's totals only rise, its times only move forward.
"""

import json
from collections.abc import Collection, Mapping

from hivepipe.db.database import Database
from hivepipe.db.listings import Entry, Listings
from hivepipe.times import ahead_ns, now, stored_time

_TOTALS = ("calls", "failed", "denied", "warned")


def record_activity(
    db: Database,
    session: str,
    since_ms: int,
    totals: Mapping[str, int],
    state: Mapping[str, object],
) -> None:
    """Store a session's activity. Each total keeps its maximum; the newest activity sets the state.

    The keys of `totals` and `state` are columns; `state` contains the time `last_active_at`.
    """
    newer = "excluded.last_active_at >= last_active_at OR last_active_at > :ahead"
    changes = [
        *(f"{name} = max({name}, excluded.{name})" for name in totals),
        *(f"{name} = CASE WHEN {newer} THEN excluded.{name} ELSE {name} END" for name in state),
    ]
    row = {"session_id": session, "since_ms": since_ms, **totals, **state}
    merge = f"(session_id, since_ms) DO UPDATE SET {', '.join(changes)}"
    db.insert("activity", row, merge, ahead=stored_time(ahead_ns()))


def activities(store: Listings, sessions: Collection[str]) -> dict[str, Entry]:
    """Return session -> activity, without the sessions that have none.

    Totals are the sums of a session's rows; other columns come from its newest row.
    """
    sql = """
        SELECT session_id, calls, failed, denied, warned, open_calls, turn_is_open, waits_for,
          task_id, profile, last_active_at
        FROM activity WHERE session_id IN (SELECT value FROM json_each(:sessions))
        ORDER BY last_active_at
    """
    found: dict[str, Entry] = {}
    for row in store.rows(sql, {"sessions": json.dumps([*sessions])}):
        before = found.get(row["session_id"])
        sums = {name: before[name] + row[name] for name in _TOTALS} if before else {}
        found[row["session_id"]] = row | sums
    return found


def has_worked_since(db: Database, session: str, time_ns: int) -> bool:
    """Tell whether activity other than the end of a turn was recorded after this time."""
    sql = """
        SELECT 1 FROM activity
        WHERE session_id = :id AND last_work_at > :time AND last_work_at <= :now
    """
    # A time in the future was stored before the clock was set back.
    times = {"time": stored_time(time_ns), "now": now()[0]}
    return db.row(sql, {"id": session, **times}) is not None


def processes_of(store: Listings, session: str) -> list[Entry]:
    """Return the processes (machine, pid, start time) that are in a session."""
    sql = """
        SELECT instances.host, instances.boot, instances.pid_space, instances.pid,
          instances.pid_started
        FROM instance_sessions JOIN instances ON instances.id = instance_sessions.instance_id
        WHERE instance_sessions.session_id = :id AND instance_sessions.status = 'active'
    """
    return store.rows(sql, {"id": session})
