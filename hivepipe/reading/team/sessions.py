"""The sessions of a team, in the form of the sessions of one machine."""

from dataclasses import dataclass

from hivepipe.costs.price_table import prices_in_force
from hivepipe.db.listings import Entry
from hivepipe.operations.liveness import with_own_activity
from hivepipe.reading.now import OpenSession, fields_of
from hivepipe.reading.session_name import name_of
from hivepipe.reading.team.costs import session_bills
from hivepipe.reading.team.source import CHOSEN, Choice, Source, in_range, valid_time

MOST_SESSIONS = 1000
_SESSIONS = f"""
    SELECT s.home, h.person, h.machine, s.id, s.status, s.project, s.swarm_id, s.model,
      s.created_at, s.updated_at, COALESCE(s.client, 'claude-code') AS client,
      (SELECT COALESCE(SUM({in_range("operation_count")}), 0)::bigint
        FROM hivepipe.instance_sessions i
        WHERE i.home = s.home AND i.session_id = s.id) AS operations,
      (SELECT COUNT(*) FROM hivepipe.agents a
        WHERE a.home = s.home AND a.session_id = s.id) AS agents,
      (SELECT COUNT(*) FROM hivepipe.agents a WHERE a.home = s.home AND a.session_id = s.id
        AND a.completed_at IS NULL AND a.status IN ('spawned', 'running', 'active')
        AND a.deleted_at IS NULL) AS at_work,
      own.*
    FROM hivepipe.sessions s JOIN hivepipe.v_homes h ON h.home = s.home
      LEFT JOIN LATERAL (
        SELECT SUM({in_range("calls")})::bigint AS calls,
          SUM({in_range("failed")})::bigint AS failed,
          SUM({in_range("denied")})::bigint AS denied,
          SUM({in_range("warned")})::bigint AS warned,
          MAX(last_active_at) AS last_active_at,
          (array_agg(open_calls ORDER BY last_active_at DESC))[1] AS open_calls,
          (array_agg(turn_is_open ORDER BY last_active_at DESC))[1] AS turn_is_open,
          (array_agg(waits_for ORDER BY last_active_at DESC))[1] AS waits_for
        FROM hivepipe.activity c WHERE c.home = s.home AND c.session_id = s.id) own ON true
    WHERE (%(with_ended)s OR s.status IN ('active', 'paused')) AND {CHOSEN}
      AND (%(since)s::text = '' OR s.updated_at >= %(since)s::text)
      AND (%(until)s::text = '' OR s.updated_at < %(until)s::text)
    ORDER BY s.updated_at DESC NULLS LAST, s.id LIMIT %(limit)s
"""
_OF_ACTIVITY = (
    *("calls", "failed", "denied", "warned", "last_active_at"),
    *("open_calls", "turn_is_open", "waits_for"),
)


@dataclass(frozen=True)
class TeamSession(OpenSession):
    """An open session of a member's machine; `home` is the home's number on the server."""

    person: str = ""
    machine: str = ""


def team_sessions(
    source: Source, choice: Choice, *, with_ended: bool, limit: int = MOST_SESSIONS
) -> list[Entry]:
    """Return a team's open sessions, or with `with_ended` all sessions, last active first.

    The form is that of a listing of one machine.

    Each session also has `person`, `machine`, `home` and `agents_at_work`.
    """
    values = choice.values() | {"with_ended": with_ended, "limit": limit}
    found = source.rows(_SESSIONS, values)
    texts = source.texts("sessions", [(row["home"], row["id"]) for row in found], "sessions")
    entries = [_entry(row, texts.get((row["home"], row["id"]), {})) for row in found]
    return sorted(entries, key=lambda entry: str(entry["last_active_at"]), reverse=True)


def _entry(row: Entry, texts: Entry) -> Entry:
    own = {name: row.pop(name) for name in _OF_ACTIVITY}
    own = {name: value for name, value in own.items() if value is not None}
    at_work = row.pop("at_work")
    times = {name: valid_time(row[name]) for name in ("created_at", "updated_at")}
    session = {**row, **times, "objective": texts.get("objective")}
    own["last_active_at"] = valid_time(own.get("last_active_at"))
    return {**with_own_activity(session, own, alive=None), "agents_at_work": at_work}


def open_team_sessions(
    source: Source, choice: Choice, home: str, *, with_ended: bool, limit: int
) -> list[TeamSession]:
    """Return the sessions for the page, with costs at the prices of the local `home`.

    Raise TeamError, or PricesError if a price table cannot be read.
    """
    found = team_sessions(source, choice, with_ended=with_ended, limit=limit)
    prices = prices_in_force(home)
    bills = session_bills(source, [(entry["home"], entry["id"]) for entry in found])
    costs = {key: bill.cost(prices).rounded for key, bill in bills.items()}
    return [_shown(entry, costs.get((entry["home"], entry["id"]), 0.0)) for entry in found]


def _shown(entry: Entry, dollars: float | None) -> TeamSession:
    return TeamSession(
        home=f"{entry['home']}",
        project=entry["project"] or "",
        name=name_of(entry["id"], entry),
        dollars=dollars,
        person=entry["person"],
        machine=entry["machine"],
        **fields_of(entry),
    )
