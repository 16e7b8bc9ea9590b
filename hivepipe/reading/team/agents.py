"""The subagents of a team, in the form of the subagents of one machine."""

from dataclasses import dataclass, fields

from hivepipe.costs.price_table import prices_in_force
from hivepipe.db.listings import Entry, with_metadata
from hivepipe.reading.agents import Agent, AgentsOfSession, nested
from hivepipe.reading.session_name import name_of
from hivepipe.reading.team.costs import team_bills
from hivepipe.reading.team.source import CHOSEN, Choice, Source, valid_time
from hivepipe.team.shared_rows import clean

MOST_AGENTS = 1000
_AGENTS = f"""
    SELECT a.home, h.person, h.machine, a.id, a.session_id, a.swarm_id, a.type, a.status, a.model,
      a.created_at, a.began_at, a.last_active, a.completed_at, a.deleted_at, a.deleted_reason,
      a.metadata, COALESCE(a.outcome,
        CASE WHEN a.deleted_at IS NULL AND s.status = 'ended' THEN 'lost' END) AS outcome,
      COALESCE(s.project, '') AS project
    FROM hivepipe.agents a JOIN hivepipe.v_homes h ON h.home = a.home
      LEFT JOIN hivepipe.sessions s ON s.home = a.home AND s.key = a.session_id
    WHERE {CHOSEN} AND (%(session)s::text = '' OR starts_with(a.session_id, %(session)s::text))
      AND (%(kind)s::text = '' OR a.type = %(kind)s::text)
      AND (%(since)s::text = '' OR a.created_at >= %(since)s::text)
      AND (%(until)s::text = '' OR a.created_at < %(until)s::text)
      AND (%(state)s::text = '' OR %(state)s::text = COALESCE(a.outcome,
        CASE WHEN a.deleted_at IS NULL AND s.status = 'ended' THEN 'lost' END, a.status))
    ORDER BY a.created_at DESC NULLS LAST, a.id LIMIT %(limit)s
"""
_TIMES = ("created_at", "began_at", "last_active", "completed_at", "deleted_at")
_OF_AGENT = {each.name for each in fields(Agent)}
_Dollars = dict[tuple[str, ...], float | None]


@dataclass(frozen=True)
class TeamAgents(AgentsOfSession):
    """The agents of one session of a machine; `home` is the home's number on the server."""

    person: str = ""
    machine: str = ""


def team_agents(
    source: Source,
    choice: Choice,
    *,
    session: str = "",
    kind: str = "",
    state: str = "",
    limit: int = MOST_AGENTS,
) -> list[Entry]:
    """Return a team's agents, newest first, in the form of a listing of one machine.

    Each agent also has `person`, `machine`, `home` and `project`. `session` is a prefix of an id.
    """
    filters = {"session": clean(session), "kind": clean(kind), "state": clean(state)}
    found = source.rows(_AGENTS, choice.values() | filters | {"limit": limit})
    texts = source.texts("agents", [(row["home"], row["id"]) for row in found], "agents")
    return [_entry(row, texts.get((row["home"], row["id"]), {})) for row in found]


def _entry(row: Entry, texts: Entry) -> Entry:
    times = {name: valid_time(row[name]) or None for name in _TIMES}
    hidden = {name: texts.get(name) for name in ("name", "error")}
    return with_metadata({**row, **times, **hidden})


def team_agents_by_session(
    source: Source, choice: Choice, home: str, *, limit: int, kind: str = "", state: str = ""
) -> tuple[list[TeamAgents], bool]:
    """Return the newest agents grouped by session, and whether older agents exist.

    The costs are computed at the prices of the local `home`.
    """
    found = team_agents(source, choice, kind=kind, state=state, limit=limit + 1)
    shown = found[:limit]
    sessions = sorted({(each["home"], each["session_id"] or "") for each in shown})
    titles = source.texts("sessions", sessions, "sessions")
    costs = _costs(source, sessions, home)
    of: dict[tuple[int, str], list[Entry]] = {}
    for entry in shown:
        of.setdefault((entry["home"], entry["session_id"] or ""), []).append(entry)
    by_session = [_session(each, titles.get(key, {}), costs) for key, each in of.items()]
    return by_session, len(found) > limit


def _session(entries: list[Entry], about: Entry, costs: _Dollars) -> TeamAgents:
    """Return the agents of one session; `entries` are sorted newest first."""
    entry = entries[0]
    session = entry["session_id"] or ""
    return TeamAgents(
        home=f"{entry['home']}",
        session_id=session,
        name=name_of(session, about),
        title=about.get("objective") or "",
        project=entry["project"],
        agents=nested([_agent(each, costs) for each in reversed(entries)]),
        person=entry["person"],
        machine=entry["machine"],
    )


def _agent(entry: Entry, costs: _Dollars) -> Agent:
    own = {name: entry[name] for name in _OF_AGENT & {*entry}} | {"home": f"{entry['home']}"}
    return Agent(**own, cost_usd=costs.get((entry["home"], entry["session_id"] or "", entry["id"])))


def _costs(source: Source, sessions: list[tuple[int, str]], home: str) -> _Dollars:
    if not sessions:
        return {}
    prices = prices_in_force(home)
    columns = ("home", "session", "agent")
    added = team_bills(source, Choice(), columns, sessions=sessions)
    return {key: bill.cost(prices).rounded for key, bill in added.of.items()}
