"""Queries of the commands, on a read-only connection."""

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import TIMEOUT_MAX, Timer
from typing import Any, TypeVar

from hivepipe.db.location import database_path
from hivepipe.db.migrations import made_by_newer, made_by_older
from hivepipe.db.tree import refuse_tracked
from hivepipe.errors import NothingRecordedError, StoreError
from hivepipe.files.file_size import with_limit
from hivepipe.files.sqlite_file import refuse_special_file
from hivepipe.jobs.about_session import COLUMNS
from hivepipe.jobs.agent_expiry import metadata_of
from hivepipe.transcripts.lines import part

BUSY_TIMEOUT_SECS = 5.0
_NO_FILE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
_SHOWN = 5
_ALL = -1  # SQLite's LIMIT for all rows

Entry = dict[str, Any]
Found = TypeVar("Found")
Other = TypeVar("Other")

# The ids of a kind that begin with a prefix, as a range, because a range uses the index. Log lines
# and agents outlive their session, so the id of a deleted session is found in them.
_IDS = {
    "session": """
        SELECT id FROM sessions WHERE id >= :prefix AND id < :behind
        UNION SELECT session_id FROM session_logs
          WHERE session_id >= :prefix AND session_id < :behind
        UNION SELECT session_id FROM agents
          WHERE session_id >= :prefix AND session_id < :behind
        ORDER BY 1
    """,
    "agent": "SELECT id FROM agents WHERE id >= :prefix AND id < :behind ORDER BY 1",
    "session with a summary": """
        SELECT DISTINCT session_id AS id FROM summaries
        WHERE session_id >= :prefix AND session_id < :behind ORDER BY 1
    """,
    "task": "SELECT id FROM tasks WHERE id >= :prefix AND id < :behind ORDER BY 1",
}
_LISTED_BY = {
    "session": "sessions --all",
    "subagent": "agents",
    "agent": "agents",
    "session with a summary": "summaries list",
    "task": "task list --all",
}
_LAST_CHARACTER = "\U0010ffff"


def one_of(kind: str, prefix: str, found: list[str], option: str = "") -> str:
    """Return the id in `found` that equals the prefix, or else the only id in it.

    Raise StoreError if there is no id, or more than one. For no id, the error names the command
    that lists the ids, with its `option`.
    """
    if prefix in found:
        return prefix
    if not prefix or not found:
        raise StoreError(unknown_id(kind, prefix, option))
    if len(found) > 1:
        some = ", ".join(found[:_SHOWN]) + (" ..." if len(found) > _SHOWN else "")
        raise StoreError(f"{len(found)} ids begin with {prefix}: {some}")
    return found[0]


def unknown_id(kind: str, prefix: str, option: str = "") -> str:
    """Return the error text for an unknown id, with the command that lists the ids."""
    return f"no {kind} has the id {prefix}: see `hivepipe {_LISTED_BY[kind]}{option}`"


def quoted(name: str) -> str:
    """Return a table's name quoted for SQL: tables that a person added can have any name."""
    return '"{}"'.format(name.replace('"', '""'))


def prefix_bounds(prefix: str) -> dict[str, str]:
    """Return the bounds of ids with this prefix: `:prefix` inclusive, `:behind` exclusive."""
    return {"prefix": prefix, "behind": prefix + _LAST_CHARACTER}


def is_unused(path: Path) -> bool:
    """Tell whether no event was ever stored; return False if the database cannot be read."""
    try:
        with listings(path) as store:
            return store.is_empty()
    except StoreError:
        return False


def read_store(home: str, read: Callable[["Listings"], Found], otherwise: Other) -> Found | Other:
    """Return the result of `read` on a home's database, or `otherwise` if it is unreadable."""
    try:
        with listings(database_path(home)) as store:
            return read(store)
    except StoreError:
        return otherwise


@contextmanager
def listings(path: Path) -> Iterator["Listings"]:
    """Open a database read-only. Raise StoreError if the file is missing or cannot be read."""
    if not path.exists():
        raise NothingRecordedError(path)
    refuse_tracked(path)
    try:
        refuse_special_file(path)
        connection = _connection(path)
    except sqlite3.Error as error:
        raise StoreError(f"cannot open {path}: {error}") from error
    try:
        connection.row_factory = sqlite3.Row
        yield Listings(connection)
    except sqlite3.Error as error:
        if _is_empty(connection):
            raise NothingRecordedError(path) from error
        reason = _version(connection) or with_limit(str(error))
        raise StoreError(f"cannot read {path}: {reason}") from error
    finally:
        connection.close()


def _connection(path: Path) -> sqlite3.Connection:
    """Open a database for reading; if SQLite cannot make files beside it, open it as immutable."""
    connection = _opened(path)
    if _cannot_create_files(connection) and not _has_log(path):
        connection.close()
        return _opened(path, "&immutable=1")  # other processes cannot write there either
    return connection


def _opened(path: Path, how: str = "") -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro{how}"
    # No isolation level, so that a query's lock ends with its last row and no writer waits.
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECS, isolation_level=None)


def _cannot_create_files(connection: sqlite3.Connection) -> bool:
    """Tell whether SQLite cannot create its `-shm` file, because the disk is full or read-only."""
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_FILE
    return False


def _has_log(path: Path) -> bool:
    """Tell whether there is a write-ahead log, which may hold the newest rows."""
    with suppress(FileNotFoundError):
        return Path(f"{path.resolve()}-wal").stat().st_size > 0
    return False


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Tell whether the database has no tables yet, because a process is creating it."""
    with suppress(sqlite3.Error):
        return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    return False


def _version(connection: sqlite3.Connection) -> str:
    """Return an error text if another version is known to have made the database, else ""."""
    with suppress(sqlite3.Error):
        done = Listings(connection).steps()
        return made_by_newer(done) or made_by_older(done)
    return ""


_AGENT = """
    id, session_id, swarm_id, name, type, status, model, created_at, began_at, last_active,
    completed_at, deleted_at, deleted_reason, metadata
"""
# The outcome of an agent is `lost` if it has not finished and its session has ended.
_OUTCOME = """
    COALESCE(outcome, CASE WHEN deleted_at IS NULL AND EXISTS (SELECT 1 FROM sessions
      WHERE sessions.id = agents.session_id AND sessions.status = 'ended') THEN 'lost' END)
"""


def with_metadata(agent: Entry) -> Entry:
    """Return an agent's row with tokens, duration and parent from its metadata, None if unknown."""
    metadata = metadata_of(agent) or {}
    usage, parent = part(metadata, "usage"), part(metadata, "spawn_context").get("agent_id")
    return agent | {
        "tokens": usage.get("tokens"),
        "duration_ms": usage.get("duration_ms"),
        "parent_id": parent if isinstance(parent, str) else None,
    }


_UPKEEP_TABLES = ("schema_migrations", "applied", "slots", "counters", "alerts")


class Listings:
    """The queries on one read-only connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Keep the connection, which the caller closes."""
        self._connection = connection

    def full_id(self, kind: str, prefix: str) -> str:
        """Return the id that equals the prefix, or else the only id that begins with it.

        `kind` is a key of `_IDS`. Raise StoreError if there is no such id, or more than one.
        """
        return one_of(kind, prefix, self.ids(kind, prefix))

    def ids(self, kind: str, prefix: str) -> list[str]:
        """Return the ids of a kind (key of `_IDS`) that start with `prefix`."""
        return [str(row["id"]) for row in self.rows(_IDS[kind], prefix_bounds(prefix))]

    def sessions(self, with_ended: bool, limit: int = _ALL) -> list[Entry]:
        """Return up to `limit` sessions, last updated first; ended ones only if `with_ended`."""
        sql = """
            SELECT id, status, project, swarm_id, model, objective, created_at, updated_at,
              COALESCE(client, 'claude-code') AS client,
              (SELECT COALESCE(SUM(operation_count), 0) FROM instance_sessions
                WHERE session_id = sessions.id) AS operations,
              (SELECT COUNT(*) FROM agents WHERE session_id = sessions.id) AS agents
            FROM (SELECT * FROM sessions WHERE :with_ended OR status IN ('active', 'paused')
              ORDER BY updated_at DESC, id LIMIT :limit) AS sessions
            ORDER BY updated_at DESC, id
        """  # the query sorts and limits before it counts the rows of each session
        return self.rows(sql, {"with_ended": with_ended, "limit": limit})

    def titles(self, sessions: Collection[str]) -> dict[str, Entry]:
        """Return session id -> objective, project and the beginning of the first prompt."""
        sql = """
            SELECT id, objective, project,
              (SELECT substr(prompt, 1, 200) FROM prompts WHERE session_id = sessions.id
               ORDER BY created_at, id LIMIT 1) AS prompt
            FROM sessions
            WHERE id IN (SELECT value FROM json_each(:sessions))
        """
        return {row["id"]: row for row in self.rows(sql, {"sessions": json.dumps([*sessions])})}

    def project_of_sessions(self) -> dict[str, str]:
        sql = "SELECT id, project FROM sessions WHERE project <> ''"
        return {row["id"]: row["project"] for row in self.rows(sql, {})}

    def session(self, session: str) -> Entry | None:
        """Return one session with the numbers of its related rows, or None."""
        sql = f"""
            SELECT id, status, project, swarm_id, swarm_name, {", ".join(COLUMNS)},
              created_at, updated_at, paused_at, ended_at, end_reason,
              checkpoint_data,
              (SELECT COUNT(*) FROM agents WHERE session_id = :id) AS agents,
              (SELECT COUNT(*) FROM prompts WHERE session_id = :id) AS prompts,
              (SELECT COUNT(*) FROM skill_uses WHERE session_id = :id) AS skill_uses,
              (SELECT COUNT(*) FROM session_logs WHERE session_id = :id) AS log_lines
            FROM sessions WHERE id = :id
        """
        row = self.row(sql, {"id": session})
        return row and row | {"client": row["client"] or "claude-code"}

    def instances(self, session: str) -> list[Entry]:
        sql = """
            SELECT instance_id, status, pid, started_at, last_seen, operation_count,
              checkpoint_count
            FROM instance_sessions WHERE session_id = :id ORDER BY started_at, instance_id
        """
        return self.rows(sql, {"id": session})

    def log(self, session: str) -> list[Entry]:
        """Return the log lines of a session in the order of their events."""
        sql = """
            SELECT created_at, log_level, message, data FROM session_logs
            WHERE session_id = :id ORDER BY created_at, id
        """
        return self.rows(sql, {"id": session})

    def agents(
        self,
        session: str = "",
        since: str = "",
        until: str = "",
        kind: str = "",
        state: str = "",
        limit: int = _ALL,
    ) -> Iterator[Entry]:
        """Read agents, newest first, filtered by session, time range, type and state."""
        # An OR would read the whole table.
        named = {
            "session_id = :id": session,
            "created_at >= :since": since,
            "created_at < :until": until,
            "type = :kind": kind,
            f"COALESCE({_OUTCOME}, status) = :state": state,
        }
        which = [term for term, value in named.items() if value]
        sql = f"""
            SELECT {_AGENT}, {_OUTCOME} AS outcome, error
            FROM agents {"WHERE " if which else ""}{" AND ".join(which)}
            ORDER BY created_at DESC, id LIMIT :limit
        """
        wanted = {"id": session, "since": since, "until": until, "kind": kind, "state": state}
        rows = self.each(sql, wanted | {"limit": limit})
        return (with_metadata(dict(row)) for row in rows)

    def agent(self, agent: str) -> Entry | None:
        sql = f"""
            SELECT {_AGENT}, {_OUTCOME} AS outcome, error, role, tool_use_id
            FROM agents WHERE id = :id
        """
        row = self.row(sql, {"id": agent})
        return with_metadata(row) if row else None

    def trouble(self, most_secs: float = TIMEOUT_MAX) -> str:
        """Return the error that SQLite's quick check finds, or "".

        A check that takes longer than `most_secs` fails with SQLITE_INTERRUPT.
        """
        deadline = time.monotonic() + most_secs
        self._connection.set_progress_handler(lambda: time.monotonic() >= deadline, 1000)
        # SQLite before 3.41 calls no handler while it walks a tree.
        timer = Timer(most_secs, self._connection.interrupt)
        timer.start()
        try:
            (row,) = self.rows("PRAGMA quick_check(1)", {})
        finally:
            timer.cancel()
            timer.join()
            self._connection.set_progress_handler(None, 0)
        return "" if row["quick_check"] == "ok" else str(row["quick_check"])

    def made_by_newer(self) -> str:
        """Return an error text if a newer hivepipe made this database, else ""."""
        return made_by_newer(self.steps())

    def steps(self) -> set[str]:
        """Return the applied migrations of the schema."""
        return {row["id"] for row in self.rows("SELECT id FROM schema_migrations", {})}

    def counts(self) -> dict[str, int]:
        """Return table -> number of rows."""
        tables = self.rows("SELECT name FROM sqlite_master WHERE type = 'table'", {})
        return {
            row["name"]: self.rows(f"SELECT COUNT(*) AS n FROM {quoted(row['name'])}", {})[0]["n"]
            for row in tables
        }

    def is_empty(self) -> bool:
        """Tell whether no event was ever stored; rows of periodic jobs are ignored."""
        return not any(rows for table, rows in self.counts().items() if table not in _UPKEEP_TABLES)

    def effectless(self) -> dict[str, int]:
        """Return <reason>:<operation> or dropped:<kind> -> number of jobs without effect."""
        sql = "SELECT name, value FROM counters ORDER BY name"
        return {row["name"]: row["value"] for row in self.rows(sql, {})}

    def each(
        self, sql: str, parameters: Mapping[str, object] | Sequence[object]
    ) -> Generator[sqlite3.Row, None, None]:
        """Yield the rows of a long query; the write-ahead log keeps growing until it ends."""
        yield from self._connection.execute(sql, parameters)

    def row(self, sql: str, parameters: Mapping[str, object]) -> Entry | None:
        found = self._connection.execute(sql, parameters).fetchone()
        return dict(found) if found else None

    def rows(self, sql: str, parameters: Mapping[str, object]) -> list[Entry]:
        return [dict(row) for row in self._connection.execute(sql, parameters).fetchall()]
