"""Tokens and their cost over persons, machines and projects of a team.

The server adds up messages, and the reader applies its own prices. A message counts once per home,
as in the costs of one machine. Usage that Claude Code reports without a message comes last.
"""

from collections.abc import Callable, Iterable, Iterator

from hivepipe.costs.bill import Bill
from hivepipe.costs.price_table import prices_in_force
from hivepipe.costs.tokens import Tokens
from hivepipe.db.listings import Entry
from hivepipe.db.unwritten_usage import State, Used, add_state, add_used, remaining
from hivepipe.db.usage import Charge, charge_of, rate_of
from hivepipe.db.usage_sums import BAND
from hivepipe.reading.costs import Bills, GroupCost, in_order, readers
from hivepipe.reading.team.source import CHOSEN, Choice, Source, in_range, local_day

# Group -> the columns of its keys
TEAM_GROUPS = {
    "day": ("day",),
    "person": ("person",),
    "machine": ("person", "machine"),
    "project": ("project",),
    "session": ("session", "person", "machine"),
    "model": ("model",),
    "agent": ("agent", "type", "session", "person", "machine"),
}
_COLUMNS = {
    "home": "usage.home",
    "person": "h.person",
    "machine": "h.machine",
    "project": "COALESCE(s.project, '')",
    "session": "COALESCE(usage.session_id, '')",
    "agent": "COALESCE(usage.agent_id, '')",
    "type": "COALESCE(a.type, '')",
}
# An invalid count or time of one machine must not make the sums of all machines fail.
_SUMS = ", ".join(f"SUM({in_range(f'usage.{name}')})::bigint AS {name}" for name in Tokens._fields)
_DAY = "substr(usage.created_at, 1, 10)"  # in UTC, because prices begin on a UTC day
_QUARTER = """
    substr(usage.created_at, 1, 14) || CASE WHEN substr(usage.created_at, 15, 2) ~ '^[0-5][0-9]$'
      THEN (substr(usage.created_at, 15, 2)::int / 15)::text ELSE '' END
"""
_RATE = "COALESCE(usage.model, ''), COALESCE(usage.speed, ''), COALESCE(usage.region, '')"
_MESSAGES = """
    SELECT MIN(usage.created_at) AS created_at, COALESCE(usage.model, '') AS model,
      COALESCE(usage.speed, '') AS speed, COALESCE(usage.region, '') AS region,
      {band} AS band, COUNT(*) AS messages, {sums} {columns}
    FROM hivepipe.usage JOIN hivepipe.v_homes h ON h.home = usage.home
      LEFT JOIN hivepipe.sessions s ON s.home = usage.home AND s.key = usage.session_id
      LEFT JOIN hivepipe.agents a ON a.home = usage.home AND a.key = usage.agent_id
    WHERE usage.created_at >= %(since)s::text AND {chosen} AND {sessions}
      AND (%(until)s::text = '' OR usage.created_at < %(until)s::text)
      AND NOT EXISTS (
        SELECT FROM hivepipe.usage other WHERE usage.is_sidechain <> 0
          AND other.home = usage.home AND other.message_id = usage.message_id
          AND (other.is_sidechain = 0 OR other.output > usage.output
            OR (other.output = usage.output
              AND other.request_id COLLATE "C" > usage.request_id COLLATE "C")))
    GROUP BY {time}, {rate}, band {columns_alone}
    ORDER BY 1
"""
_OF_SESSIONS = """
    (usage.home, usage.session_id) IN (SELECT * FROM unnest(%(homes)s::int[], %(ids)s::text[]))
"""
_STATES = """
    WITH counted AS (
      SELECT c.home, c.session_id FROM hivepipe.cost_states c
        JOIN hivepipe.v_homes h ON h.home = c.home
        LEFT JOIN hivepipe.sessions s ON s.home = c.home AND s.key = c.session_id
      WHERE {chosen} AND {sessions} AND c.started_ms IS NOT NULL AND c.duration_ms IS NOT NULL
        AND c.model IS NOT NULL AND c.created_at IS NOT NULL
      GROUP BY c.home, c.session_id
      HAVING MAX(c.created_at) >= %(since)s::text
        AND (%(until)s::text = '' OR MAX(c.created_at) < %(until)s::text))
    SELECT c.home, c.session_id, c.started_ms, c.duration_ms, c.created_at, c.model,
      {counts}, h.person, h.machine, COALESCE(s.project, '') AS project,
      (c.home, c.session_id) IN (SELECT * FROM counted) AS is_chosen
    FROM hivepipe.cost_states c JOIN hivepipe.v_homes h ON h.home = c.home
      LEFT JOIN hivepipe.sessions s ON s.home = c.home AND s.key = c.session_id
    WHERE (c.home, c.started_ms) IN (SELECT o.home, o.started_ms FROM hivepipe.cost_states o
      WHERE (o.home, o.session_id) IN (SELECT * FROM counted))
    ORDER BY c.home, c.started_ms, c.duration_ms, c.session_id, c.model
"""
_USED = f"""
    SELECT usage.home, usage.session_id, COALESCE(usage.model, '') AS model, {_SUMS}
    FROM hivepipe.usage WHERE {_OF_SESSIONS} GROUP BY 1, 2, 3
"""


_COUNTS = ", ".join(f"{in_range(f'c.{name}')} AS {name}" for name in Tokens._fields)


def team_charges(
    source: Source, choice: Choice, columns: Iterable[str], sessions: list[tuple[int, str]] | None
) -> Iterator[tuple[Charge, Entry]]:
    """Yield charges grouped by `columns`, each with a row of the values of these columns.

    With the column `day`, the charges are also grouped by quarter of an hour.
    """
    names = [name for name in columns if name in _COLUMNS]
    values = choice.values() | _pairs(sessions or [])
    sql = _MESSAGES.format(
        band=BAND,
        sums=_SUMS,
        chosen=CHOSEN,
        columns="".join(f", {_COLUMNS[name]} AS {name}" for name in names),
        columns_alone="".join(f", {_COLUMNS[name]}" for name in names),
        sessions="true" if sessions is None else _OF_SESSIONS,
        time=_QUARTER if "day" in columns else _DAY,
        rate=_RATE,
    )
    for row in source.rows(sql, values):
        tokens = Tokens.of(row)
        charge = Charge(
            time=row["created_at"],
            session=row.get("session", ""),
            agent=row.get("agent", ""),
            agent_type=row.get("type", ""),
            rate=rate_of(row, row["band"]),
            tokens=tokens,
            messages=row["messages"],
        )
        yield charge, row
    yield from _beyond_messages(source, values, sessions)


def _pairs(sessions: list[tuple[int, str]]) -> Entry:
    return {"homes": [home for home, _ in sessions], "ids": [each for _, each in sessions]}


def _beyond_messages(
    source: Source, values: Entry, sessions: list[tuple[int, str]] | None
) -> Iterator[tuple[Charge, Entry]]:
    """Yield the usage that no message contains, home by home."""
    of_sessions = "true" if sessions is None else _OF_SESSIONS.replace("usage.", "c.")
    rows = source.rows(_STATES.format(chosen=CHOSEN, sessions=of_sessions, counts=_COUNTS), values)
    states: dict[int, dict[tuple[str, int, int], State]] = {}
    owners: dict[tuple[int, str], Entry] = {}
    for row in rows:
        add_state(states.setdefault(row["home"], {}), row)
        if row["is_chosen"]:
            owners[row["home"], row["session_id"]] = row
    used: dict[int, Used] = {}
    for row in source.rows(_USED, _pairs([*owners])) if owners else ():
        add_used(used.setdefault(row["home"], {}), row)
    for home, of_home in states.items():
        chosen = sorted(session for at, session in owners if at == home)
        for rest in remaining(chosen, of_home.values(), used.get(home, {})):
            yield charge_of(rest), owners[home, rest.session]


def team_bills(
    source: Source,
    choice: Choice,
    columns: tuple[str, ...],
    day_of: Callable[[str], str] = local_day,
    sessions: list[tuple[int, str]] | None = None,
) -> Bills:
    """Return the sums of usage, grouped by `columns`: keys of `_COLUMNS`, `day` and `model`."""
    found = Bills(columns)
    read = readers(day_of)
    for charge, row in team_charges(source, choice, columns, sessions):
        key = tuple(read[name](charge) if name in read else row[name] for name in columns)
        found.add(key, charge)
    return found


def session_bills(source: Source, sessions: list[tuple[int, str]]) -> dict[tuple[int, str], Bill]:
    if not sessions:
        return {}
    added = team_bills(source, Choice(), ("home", "session"), sessions=sessions)
    return {(key[0], key[1]): bill for key, bill in added.of.items()}  # type: ignore[misc]


def team_costs_by_day(source: Source, choice: Choice, home: str) -> list[GroupCost]:
    """Return the costs by day, model, project, person and machine; newest day first.

    Raise TeamError, or PricesError if a price table of `home` cannot be read.
    """
    columns = ("day", "model", "project", "person", "machine")
    return in_order(team_bills(source, choice, columns).priced(prices_in_force(home)))
