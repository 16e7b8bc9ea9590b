"""What the commands show: queries on a read-only connection, each over when its rows are there."""

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from hivepipe.errors import NothingRecordedError, StoreError
from hivepipe.file_size import with_limit
from hivepipe.store.migrations import made_by_newer
from hivepipe.store.tracked import refuse_tracked

BUSY_TIMEOUT_SECS = 5.0
_SHOWN = 5

Entry = dict[str, Any]

# A range, so that an index serves it. History and agents outlive their session: its id still
# leads to them.
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
    "summary": """
        SELECT DISTINCT session_id AS id FROM summaries
        WHERE session_id >= :prefix AND session_id < :behind ORDER BY 1
    """,
    "task": "SELECT id FROM tasks WHERE id >= :prefix AND id < :behind ORDER BY 1",
}
_LAST_CHARACTER = "\U0010ffff"


def one_of(kind: str, prefix: str, found: list[str]) -> str:
    """Return the only id of those that begin so, or the one that is no longer; else StoreError."""
    if prefix in found:
        return prefix
    if not prefix or not found:
        raise StoreError(f"no {kind} has the id {prefix}")
    if len(found) > 1:
        some = ", ".join(found[:_SHOWN]) + (" ..." if len(found) > _SHOWN else "")
        raise StoreError(f"{len(found)} ids of a {kind} begin with {prefix}: {some}")
    return found[0]


def beginning(prefix: str) -> dict[str, str]:
    """Return the range of the ids that begin so: `:prefix` itself is in it, `:behind` is not."""
    return {"prefix": prefix, "behind": prefix + _LAST_CHARACTER}


@contextmanager
def listings(path: Path) -> Iterator["Listings"]:
    """Open a database for reading; StoreError: there is none yet, or it cannot be read."""
    if not path.exists():
        raise NothingRecordedError(path)
    refuse_tracked(path)
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        # No isolation level: a query's lock ends with its last row, and no writer waits for us.
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_SECS, isolation_level=None)
    except sqlite3.Error as error:
        raise StoreError(f"cannot open {path}: {error}") from error
    try:
        connection.row_factory = sqlite3.Row
        yield Listings(connection)
    except sqlite3.Error as error:
        raise StoreError(f"cannot read {path}: {with_limit(str(error))}") from error
    finally:
        connection.close()


_AGENT = """
    id, session_id, swarm_id, name, type, status, model, created_at, began_at, last_active,
    completed_at, deleted_at, deleted_reason, metadata
"""
# One that has not finished when its session is over never will.
_OUTCOME = """
    COALESCE(outcome, CASE WHEN deleted_at IS NULL AND EXISTS (SELECT 1 FROM sessions
      WHERE sessions.id = agents.session_id AND sessions.status = 'ended') THEN 'lost' END)
"""


def _with_usage(agent: Entry) -> Entry:
    """Add what the metadata of an agent say: tokens, and how long it ran."""
    try:
        usage = orjson.loads(agent["metadata"] or "{}")["usage"]
        return agent | {"tokens": usage["tokens"], "duration_ms": usage["duration_ms"]}
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return agent | {"tokens": None, "duration_ms": None}


_OF_THE_CLOCK = ("schema_migrations", "applied", "slots", "counters", "alerts")


class Listings:
    """The queries."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """The connection is the caller's to close."""
        self._connection = connection

    def full_id(self, kind: str, prefix: str) -> str:
        """Return the one (of `_IDS`) whose id begins so; StoreError: none, or several."""
        return one_of(kind, prefix, self.ids(kind, prefix))

    def ids(self, kind: str, prefix: str) -> list[str]:
        """Return the ids (of `_IDS`) that begin so."""
        return [str(row["id"]) for row in self.rows(_IDS[kind], beginning(prefix))]

    def sessions(self, with_ended: bool) -> list[Entry]:
        """Return the open sessions, or all, newest first."""
        sql = """
            SELECT id, status, project, swarm_id, model, objective, created_at, updated_at,
              COALESCE(client, 'claude-code') AS client,
              (SELECT COALESCE(SUM(operation_count), 0) FROM instance_sessions
                WHERE session_id = sessions.id) AS operations,
              (SELECT COUNT(*) FROM agents WHERE session_id = sessions.id) AS agents
            FROM sessions WHERE :with_ended OR status IN ('active', 'paused')
            ORDER BY updated_at DESC, id
        """
        return self.rows(sql, {"with_ended": with_ended})

    def session(self, session: str) -> Entry | None:
        """Return one session with all that hangs on it counted."""
        sql = """
            SELECT id, status, project, swarm_id, swarm_name, objective, model, effort,
              source, COALESCE(client, 'claude-code') AS client,
              transcript_path, created_at, updated_at, paused_at, ended_at, end_reason,
              checkpoint_data,
              (SELECT COUNT(*) FROM agents WHERE session_id = :id) AS agents,
              (SELECT COUNT(*) FROM prompts WHERE session_id = :id) AS prompts,
              (SELECT COUNT(*) FROM skill_uses WHERE session_id = :id) AS skill_uses,
              (SELECT COUNT(*) FROM session_logs WHERE session_id = :id) AS log_lines
            FROM sessions WHERE id = :id
        """
        return next(iter(self.rows(sql, {"id": session})), None)

    def instances(self, session: str) -> list[Entry]:
        """Return the instances that are or were in a session."""
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

    def agents(self, session: str = "", since: str = "", until: str = "") -> list[Entry]:
        """Return all agents, or those of one session, or of a time; newest first."""
        # An OR would read them all.
        named = {"session_id = :id": session, "created_at >= :since": since}
        which = [term for term, value in (named | {"created_at < :until": until}).items() if value]
        sql = f"""
            SELECT {_AGENT}, {_OUTCOME} AS outcome, error
            FROM agents {"WHERE " if which else ""}{" AND ".join(which)}
            ORDER BY created_at DESC, id
        """
        found = self.rows(sql, {"id": session, "since": since, "until": until})
        return [_with_usage(entry) for entry in found]

    def agent(self, agent: str) -> Entry | None:
        """Return one agent."""
        sql = f"""
            SELECT {_AGENT}, {_OUTCOME} AS outcome, error, role, tool_use_id
            FROM agents WHERE id = :id
        """
        return next((_with_usage(row) for row in self.rows(sql, {"id": agent})), None)

    def trouble(self) -> str:
        """Return what SQLite finds wrong with the file; empty if nothing."""
        (said,) = self.rows("PRAGMA quick_check(1)", {})
        return "" if said["quick_check"] == "ok" else str(said["quick_check"])

    def made_by_newer(self) -> str:
        """Say so if a newer hivepipe made this database; empty if not."""
        return made_by_newer(
            {row["id"] for row in self.rows("SELECT id FROM schema_migrations", {})}
        )

    def counts(self) -> dict[str, int]:
        """Return how many rows each table has."""
        tables = self.rows("SELECT name FROM sqlite_master WHERE type = 'table'", {})
        return {
            row["name"]: self.rows(f"SELECT COUNT(*) AS n FROM {row['name']}", {})[0]["n"]
            for row in tables
        }

    def is_empty(self) -> bool:
        """Has no event ever had its effect here? What runs by the clock leaves its own traces."""
        return not any(rows for table, rows in self.counts().items() if table not in _OF_THE_CLOCK)

    def effectless(self) -> dict[str, int]:
        """Return how many jobs went well without effect, by `<what>:<operation>`."""
        sql = "SELECT name, value FROM counters ORDER BY name"
        return {row["name"]: row["value"] for row in self.rows(sql, {})}

    def each(
        self, sql: str, parameters: Mapping[str, object]
    ) -> Generator[sqlite3.Row, None, None]:
        """Yield the rows of a long query; it holds back the clean-up of the log until it ends."""
        yield from self._connection.execute(sql, parameters)

    def rows(self, sql: str, parameters: Mapping[str, object]) -> list[Entry]:
        """Return all rows of a query."""
        return [dict(row) for row in self._connection.execute(sql, parameters).fetchall()]
