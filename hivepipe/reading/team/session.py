"""A team's session in an in-memory SQLite database, so that it is read like a local session."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hivepipe.costs.bill import Bill
from hivepipe.db.listings import Entry, Listings, one_of
from hivepipe.db.migrations import migrate
from hivepipe.errors import StoreError
from hivepipe.files.sqlite_file import open_in_memory
from hivepipe.reading.session_lookup import LAST
from hivepipe.reading.team.costs import session_bills
from hivepipe.reading.team.source import CHOSEN, Choice, Source, valid_time
from hivepipe.reading.time_line import TimeLine, spent_of, time_line
from hivepipe.team.shared_rows import clean

_MOST_FOUND = 100
_STARTING = f"""
    SELECT s.home, s.id, h.person, h.machine FROM hivepipe.sessions s
      JOIN hivepipe.v_homes h ON h.home = s.home
    WHERE starts_with(s.id, %(start)s::text) AND {CHOSEN}
    ORDER BY s.updated_at DESC NULLS LAST LIMIT %(most)s
"""
_AGENTS = f"""
    SELECT a.home, a.session_id AS id, h.person, h.machine, a.id AS agent
    FROM hivepipe.agents a JOIN hivepipe.v_homes h ON h.home = a.home
      JOIN hivepipe.sessions s ON s.home = a.home AND s.key = a.session_id
    WHERE starts_with(a.id, %(start)s::text) AND {CHOSEN}
    ORDER BY a.created_at DESC LIMIT %(most)s
"""
_ONE = """
    SELECT s.home, s.id, h.person, h.machine FROM hivepipe.sessions s
      JOIN hivepipe.v_homes h ON h.home = s.home
    WHERE s.home::text = %(home)s::text AND s.key = %(session)s::text
"""
_ROWS = "SELECT * FROM hivepipe.session_rows(%(home)s, %(session)s, %(table)s) AS row"
# Without usage, whose sums also depend on other sessions.
_TABLES = (
    *("sessions", "instance_sessions", "agents", "activity"),
    *("summaries", "prompts", "skill_uses", "session_logs"),
)
_TIMES = ("_at", "last_active", "last_seen")
_LISTS = ("key_learnings", "files", "open_ends")


@dataclass(frozen=True)
class Found:
    """A session of the team, or a subagent in it; `home` is the home's number on the server."""

    home: int
    id: str
    person: str
    machine: str
    agent: str = ""


def session_starting(source: Source, choice: Choice, start: str) -> Found:
    """Return the session whose id starts with `start`, or for `last` the one active most recently.

    Raise StoreError if no session, several sessions or several machines match.
    """
    if start == LAST:
        return _last(source, choice)
    values = choice.values() | {"start": clean(start), "most": _MOST_FOUND}
    rows = source.rows(_STARTING, values) if start else []
    wanted = one_of("session", start, [*dict.fromkeys(row["id"] for row in rows)], " --team")
    found = [Found(**row) for row in rows if row["id"] == wanted]
    if len({(each.person, each.machine) for each in found}) > 1:
        owners = ", ".join(sorted({f"{each.person}/{each.machine}" for each in found}))
        raise StoreError(f"several machines have this session: {owners}; see --person, --machine")
    return found[0]


def _last(source: Source, choice: Choice) -> Found:
    rows = source.rows(_STARTING, choice.values() | {"start": "", "most": 1})
    if not rows:
        raise StoreError("the team has no session")
    return Found(**rows[0])


def session_or_agent(source: Source, choice: Choice, start: str) -> Found:
    """Return the session, or else the subagent, whose id begins with `start`.

    Raise StoreError if there is none, or if several subagents fit.
    """
    values = choice.values() | {"start": clean(start), "most": _MOST_FOUND}
    agents = source.rows(_AGENTS, values) if start and start != LAST else []
    if not agents or source.rows(_STARTING, values):
        return session_starting(source, choice, start)
    wanted = one_of("subagent", start, [*dict.fromkeys(row["agent"] for row in agents)], " --team")
    return next(Found(**row) for row in agents if row["agent"] == wanted)


def session_of(source: Source, home: str, session: str) -> Found:
    """Return a session by home and id; raise StoreError if it does not exist or is not visible."""
    values = {"home": clean(home), "session": clean(session)}
    for row in source.rows(_ONE, values):
        return Found(**row)
    raise StoreError("the team has no such session, or you may not see it")


@contextmanager
def session_store(source: Source, found: Found) -> Iterator[Listings]:
    """Write an audit entry, and open an in-memory database with the rows of a session."""
    source.note("SELECT hivepipe.note_read(%s, %s, 'session')", found.home, found.id)
    with closing(open_in_memory()) as connection:
        connection.row_factory = sqlite3.Row
        migrate(connection, Path())
        for table in _TABLES:
            values = {"home": found.home, "session": found.id, "table": table}
            _fill(connection, table, [row["row"] for row in source.rows(_ROWS, values)])
        yield Listings(connection)


def _fill(connection: sqlite3.Connection, table: str, rows: list[Entry]) -> None:
    """Insert rows of any version of hivepipe into a table, after removing its constraints."""
    columns = [row["name"] for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    places = ", ".join("?" for _ in columns)
    values = [[_value(name, row.get(name)) for name in columns] for row in rows]
    connection.executemany(f"INSERT INTO {table} VALUES ({places})", values)


def _value(name: str, value: object) -> object:
    if name.endswith(_TIMES) and value is not None:
        return valid_time(f"{value}")
    return "[]" if name in _LISTS and value is None else value


def team_time_line(
    source: Source, found: Found, store: Listings, home: str, limit: int
) -> TimeLine:
    """Return the time line of a session, with costs at the prices of the local `home`."""
    bills = session_bills(source, [(found.home, found.id)])
    bill = bills.get((found.home, found.id), Bill())
    return time_line(home, store, found.id, limit)._replace(cost=spent_of(home, bill))
