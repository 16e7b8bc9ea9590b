"""Change capture: record which rows of the team's tables changed, with a version for each change.

Changes are captured only while the home is joined to a team. Triggers append time and key of each
changed row to `team_log`, which is the cheapest write. The uplink moves these entries to
`team_changes`, where a row has one entry however often it changed. A version is the time in
microseconds, and always higher than the last version. So versions also rise after a restore, and
show how long a row has waited. An entry whose key matches no row stands for a deleted row.
"""

import re
import secrets
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from hivepipe.db.database import Database, write_shortly
from hivepipe.db.listings import Listings

SEPARATOR = "\x1f"  # separates the parts of a key
KEYS_AT_ONCE = 500

LOG_AT_ONCE = 500

_NOW = "julianday('now')"
_MICROSECONDS = "CAST(({at} - 2440587.5) * 86400000000 AS INTEGER)"
_NEXT = (
    "max(coalesce((SELECT max(version) FROM team_changes), 0) + 1, "
    f"{_MICROSECONDS.format(at=_NOW)})"
)
_TABLES = """
CREATE TABLE IF NOT EXISTS team_log (
  number INTEGER PRIMARY KEY, at REAL NOT NULL, tbl TEXT NOT NULL, key TEXT);
CREATE TABLE IF NOT EXISTS team_changes (
  version INTEGER PRIMARY KEY, tbl TEXT NOT NULL, key TEXT NOT NULL, UNIQUE (tbl, key));
CREATE TABLE IF NOT EXISTS team_home (
  id TEXT PRIMARY KEY, terms TEXT, sweep_below INTEGER, sweep_at INTEGER);
CREATE TABLE IF NOT EXISTS team_sessions (
  session_id TEXT PRIMARY KEY, project TEXT, has_moved INTEGER NOT NULL DEFAULT 0);
"""


# The version of row n is its time or, if greater, the version of row n - 1 plus 1. The first one is
# higher than all existing versions. Without recursion: n + max(at - n) over the rows up to n.
_COLLECT = f"""
    INSERT INTO team_changes (version, tbl, key)
    SELECT n + max(max(at - n) OVER (ORDER BY n), newest), tbl, key FROM (
      SELECT tbl, key, {_MICROSECONDS.format(at="max(at)")} AS at,
        row_number() OVER (ORDER BY max(at), tbl, key) AS n,
        coalesce((SELECT max(version) FROM team_changes), 0) AS newest
      FROM team_log WHERE number <= :last AND key IS NOT NULL GROUP BY tbl, key)
    WHERE true ORDER BY n
    ON CONFLICT (tbl, key) DO UPDATE SET version = excluded.version
"""

_MONTH = "substr({row}.created_at, 1, 7)"
_JOB = "coalesce({row}.job_id, '#' || {row}.id)"


class Captured(NamedTuple):
    """A captured table; `parts` are SQL expressions that together make the key of a row.

    In `parts`, `{row}.` stands before each column. `place` lists the columns that order the rows on
    disk.
    """

    table: str
    parts: tuple[str, ...]
    place: str = "rowid"

    @property
    def is_by_month(self) -> bool:
        """Tell whether the first part of the key is the month of the row."""
        return self.parts[0] == _MONTH

    def key(self, row: str) -> str:
        """Return the key of a row as SQL; `row` is new, old or the table's name."""
        return f" || char({ord(SEPARATOR)}) || ".join(part.format(row=row) for part in self.parts)


CAPTURED = (
    Captured("forgotten_sessions", ("{row}.id",)),
    Captured("sessions", ("{row}.id",)),
    Captured("instance_sessions", ("{row}.id",)),
    Captured("agents", ("{row}.id",)),
    Captured("activity", ("{row}.session_id", "{row}.since_ms")),
    Captured(
        "cost_states",
        ("{row}.session_id", "{row}.started_ms", "{row}.duration_ms", "{row}.model"),
        place="session_id, started_ms, duration_ms, model",
    ),
    Captured("summaries", ("{row}.session_id", "{row}.state")),
    Captured("usage", (_MONTH, "{row}.message_id", "{row}.request_id")),
    Captured("prompts", (_MONTH, _JOB)),
    Captured("skill_uses", (_MONTH, _JOB)),
    Captured("session_logs", (_MONTH, _JOB)),
)


class Change(NamedTuple):
    version: int
    table: str
    key: str


def is_captured(store: Database | Listings) -> bool:
    return store.row("SELECT 1 FROM sqlite_master WHERE name = 'team_changes'", {}) is not None


def start_capture(db: Database) -> None:
    """Create the tables and triggers of change capture; repeated calls change nothing.

    The first call requests a pass over all rows (see `mark_all_changed`).
    """
    with db.transaction():
        is_new = not is_captured(db)
        for statement in (*_TABLES.strip().split(";\n"), *_triggers()):
            db.execute(statement, {})
        if db.row("SELECT 1 FROM team_home", {}) is None:
            sql = "INSERT INTO team_home (id) VALUES (CAST(:id AS TEXT))"
            db.execute(sql, {"id": secrets.token_hex(16).encode()})
        if is_new:
            _request_pass(db)


def stop_capture(db: Database) -> None:
    """Drop the triggers and tables of change capture; the home's id stays, for a later team."""
    with db.transaction():
        for each in CAPTURED:
            for event in ("insert", "update", "delete", "move"):
                db.execute(f"DROP TRIGGER IF EXISTS team_{event}_{each.table}", {})
        for table in ("team_log", "team_changes", "team_sessions"):
            db.execute(f"DROP TABLE IF EXISTS {table}", {})


class Home(NamedTuple):
    """The home's id on the server, and the state of its pass over all rows, if one is under way.

    `terms` are the policies and columns with which the rows are sent. `sweep_at` is None until all
    rows have new versions. Once the server has all rows up to `sweep_at`, it deletes its rows with
    versions below `sweep_below`. Then `sweep_below` becomes None.
    """

    id: str
    terms: str | None
    sweep_below: int | None
    sweep_at: int | None


def home_of(store: Listings) -> Home:
    (row,) = store.rows("SELECT id, terms, sweep_below, sweep_at FROM team_home", {})
    return Home(**row)


def start_pass(db: Database, terms: str) -> None:
    """Request that all rows are sent again, under these policies and columns (`Home.terms`)."""
    with db.transaction():
        db.execute("UPDATE team_home SET terms = CAST(:terms AS TEXT)", {"terms": terms.encode()})
        _request_pass(db)


def _request_pass(db: Database) -> None:
    db.execute(f"UPDATE team_home SET sweep_below = {_NEXT}, sweep_at = NULL", {})


def end_pass(db: Database) -> None:
    """Record that the server has deleted the rows that were not sent again."""
    with db.transaction():
        db.execute("UPDATE team_home SET sweep_below = NULL", {})


def _triggers() -> Iterator[str]:
    for each in CAPTURED:
        table = each.table
        head = f"CREATE TRIGGER IF NOT EXISTS team_{{}}_{table} AFTER {{}} ON {table}"
        log = f"INSERT INTO team_log (at, tbl, key) VALUES ({_NOW}, '{table}', {{}});"
        for event, row in (("insert", "new"), ("update", "new"), ("delete", "old")):
            body = log.format(each.key(row))
            yield f"{head.format(event, event.upper())} BEGIN {body} END"
        columns = ", ".join(sorted(set(re.findall(r"{row}\.(\w+)", " ".join(each.parts)))))
        moves = f"{head.format('move', f'UPDATE OF {columns}')} WHEN {each.key('old')} IS NOT"
        yield f"{moves} {each.key('new')} BEGIN {log.format(each.key('old'))} END"


def collect(db: Database) -> bool:
    """Move some logged changes to `team_changes`; return False if no change was logged."""
    if not db.row("SELECT 1 FROM team_log LIMIT 1", {}):
        return False
    with db.transaction():
        numbers = f"SELECT number FROM team_log ORDER BY number LIMIT {LOG_AT_ONCE}"
        (row,) = db.rows(f"SELECT max(number) AS last FROM ({numbers})")
        last = {"last": row["last"]}
        db.execute(_COLLECT, last)
        db.execute("DELETE FROM team_log WHERE number <= :last", last)
    return True


def mark_all_changed(db: Database) -> None:
    """Give every row a new version, in short transactions, so that all rows are sent again."""
    write_shortly(db, (partial(mark_changed, db, page) for page in _every_key(db)))
    with db.transaction():
        db.execute("UPDATE team_home SET sweep_at = (SELECT max(version) FROM team_changes)", {})


def mark_changed(db: Database, changed: Iterable[tuple[str, str]]) -> None:
    """Give these (table, key) pairs the next versions, within the caller's transaction."""
    for table, key in changed:
        sql = f"""
            INSERT INTO team_changes (version, tbl, key)
            SELECT {_NEXT}, '{table}', CAST(:key AS TEXT) WHERE true
            ON CONFLICT (tbl, key) DO UPDATE SET version = excluded.version
        """
        db.execute(sql, {"key": key.encode()})


def _every_key(db: Database) -> Iterator[list[tuple[str, str]]]:
    """Yield pages of the keys of all rows, then of the known deleted rows.

    Before the next page is read, the caller gives each key of this page a new version. Once all
    tables are read, a key with an old version belongs to a deleted row.
    """
    before = newest_version(db)
    for each in CAPTURED:
        yield from _keys_of_rows(db, each)
    tables = ", ".join(f"'{each.table}'" for each in CAPTURED)
    sql = f"""
        SELECT tbl, key FROM team_changes WHERE version <= :before AND tbl IN ({tables})
        ORDER BY version LIMIT {KEYS_AT_ONCE}
    """
    while left := db.rows(sql, {"before": before}):
        yield [(row["tbl"], row["key"]) for row in left]


def _keys_of_rows(db: Database, each: Captured) -> Iterator[list[tuple[str, str]]]:
    """Yield pages of the keys of a table's rows, in the order of its primary key."""
    places = each.place.split(", ")
    head = f"SELECT {each.key(each.table)} AS key, {each.place} FROM {each.table}"
    tail = f"ORDER BY {each.place} LIMIT {KEYS_AT_ONCE}"
    page = db.rows(f"{head} {tail}")
    while page:
        yield [(each.table, row["key"]) for row in page if row["key"] is not None]
        last = dict(zip(places, tuple(page[-1])[1:], strict=True))
        behind = ", ".join(f":{name}" for name in places)
        page = db.rows(f"{head} WHERE ({each.place}) > ({behind}) {tail}", last)


def mark_session_changed(db: Database, session: str) -> None:
    """Give the rows of a session new versions, within the caller's transaction."""
    for each in CAPTURED:
        if each.table in ("forgotten_sessions", "sessions"):
            continue
        sql = f"SELECT {each.key(each.table)} AS key FROM {each.table} WHERE session_id = :session"
        mark_changed(db, [(each.table, row["key"]) for row in db.rows(sql, {"session": session})])


class SentProject(NamedTuple):
    """The project name sent with a session's rows, or None if the rows were held back.

    `has_moved` is True if the rows were sent with another project name before.
    """

    name: str | None
    has_moved: bool


def sent_project(store: Listings, session: str) -> SentProject | None:
    """Return the project name last sent with a session's rows, or None if none is stored."""
    sql = "SELECT project, has_moved FROM team_sessions WHERE session_id = :session"
    row = store.row(sql, {"session": session})
    return SentProject(row["project"], bool(row["has_moved"])) if row else None


def keep_sent_project(db: Database, session: str, name: str | None) -> None:
    """Store the project name with which a session's rows are sent."""
    sql = """
        INSERT INTO team_sessions (session_id, project)
        VALUES (CAST(:session AS TEXT), CAST(:name AS TEXT))
        ON CONFLICT (session_id) DO UPDATE SET
          has_moved = has_moved OR project IS NOT NULL, project = excluded.project
    """
    values = {"session": session.encode(), "name": name.encode() if name is not None else None}
    db.execute(sql, values)


def project_of(store: Listings, session: str) -> str | None:
    """Return the project folder of a session, "" if it has none, or None for an unknown session."""
    row = store.row("SELECT project FROM sessions WHERE id = :id", {"id": session})
    return (row["project"] or "") if row else None


def changes_since(store: Listings, version: int, limit: int) -> list[Change]:
    """Return the next changes after a version, oldest first."""
    sql = """
        SELECT version, tbl, key FROM team_changes WHERE version > :version
        ORDER BY version LIMIT :limit
    """
    return [Change(*row) for row in store.each(sql, {"version": version, "limit": limit})]


class Lag(NamedTuple):
    """The number of rows that a server lacks, and the age of the oldest change in seconds."""

    rows: int
    secs: float


def lag_behind(store: Listings, mark: int) -> Lag:
    """Return how far a server is behind; `mark` is the newest version that the server has."""
    sql = "SELECT count(*) AS n, min(version) AS oldest FROM team_changes WHERE version > :mark"
    (row,) = store.rows(sql, {"mark": mark})
    logged = f"SELECT count(*) AS n, {_MICROSECONDS.format(at='min(at)')} AS oldest FROM team_log"
    (log,) = store.rows(logged, {})
    oldest = min((each["oldest"] for each in (row, log) if each["n"]), default=None)
    age = time.time() - oldest / 1e6 if oldest is not None else 0.0
    return Lag(row["n"] + log["n"], max(age, 0.0))


def has_changes_after(store: Listings, mark: int) -> bool:
    """Tell whether any row changed after the version `mark`, so that the server may lack it."""
    return newest_version(store) > mark or bool(store.rows("SELECT 1 FROM team_log LIMIT 1", {}))


def newest_version(store: Database | Listings) -> int:
    (row,) = store.rows("SELECT max(version) AS newest FROM team_changes", {})
    return row["newest"] or 0


def raise_version(db: Database, version: int) -> None:
    """Make the next versions exceed `version`: after a restore, the server may have newer ones."""
    sql = """
        INSERT INTO team_changes (version, tbl, key) VALUES (:version, '', '')
        ON CONFLICT (tbl, key) DO UPDATE SET version = excluded.version
    """
    with db.transaction():
        db.execute(sql, {"version": version})
