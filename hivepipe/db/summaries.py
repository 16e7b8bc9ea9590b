"""Summaries of sessions, at most one for each state of a session.

For the same state, a model's summary takes precedence over one made from metadata. Of two summaries
of the same kind the newer one takes precedence. The order and number of writes do not change the
result.
"""

import json
from typing import Any

from hivepipe.db.database import Database, new_values
from hivepipe.db.listings import Entry, Listings
from hivepipe.jobs.summary import COLUMNS, RecordSummary

LLM, PLAIN = "llm", "plain"
COMPACTION = "compaction"  # the provider of a summary by Claude Code itself

_LISTS = ("key_learnings", "files", "open_ends")
_COLUMNS = ", ".join(("session_id", *COLUMNS))


def record_summary(db: Database, session: str, made: RecordSummary) -> None:
    """Write a summary, unless a better or newer summary of the same session state exists."""
    better = f"""
        (session_id, state) DO UPDATE SET {new_values(COLUMNS)}
        WHERE excluded.kind = '{LLM}' AND summaries.kind = '{PLAIN}'
          OR excluded.kind = summaries.kind AND excluded.made_at > summaries.made_at
    """
    lists = {name: json.dumps(getattr(made, name), ensure_ascii=False) for name in _LISTS}
    db.insert("summaries", {"session_id": session, **made.row(), **lists}, better)


def list_summaries(store: Listings, session: str = "") -> list[Entry]:
    """Return the newest summary of each session, newest first.

    With `session`, return all summaries of this session.
    """
    newest = """
        NOT EXISTS (SELECT 1 FROM summaries AS other WHERE other.session_id = one.session_id
          AND (other.made_at, other.state) > (one.made_at, one.state))
    """
    which = "one.session_id = :session" if session else newest  # an OR would read the whole table
    sql = f"""
        SELECT {_COLUMNS} FROM summaries AS one WHERE {which}
        ORDER BY one.made_at DESC, one.session_id
    """
    return [_entry(row) for row in store.rows(sql, {"session": session})]


def every_summary(store: Listings) -> list[Entry]:
    """Return all summaries with the project of their session, oldest first."""
    sql = f"""
        SELECT {_COLUMNS},
          (SELECT project FROM sessions WHERE sessions.id = summaries.session_id) AS project
        FROM summaries ORDER BY made_at, session_id, state
    """
    return [_entry(row) for row in store.rows(sql, {})]


def summary_keys(store: Listings) -> list[Entry]:
    """Return session, state and time of all summaries."""
    return store.rows("SELECT session_id, state, made_at FROM summaries", {})


def is_summarised(store: Listings, session: str, state: str) -> bool:
    sql = "SELECT 1 FROM summaries WHERE session_id = :session AND state = :state"
    return store.row(sql, {"session": session, "state": state}) is not None


def silent_sessions(store: Listings, since: str, until: str) -> list[Entry]:
    """Return (id, project, last activity) of open sessions.

    The last activity of these sessions is between `since` and `until`. Sessions that were
    summarised since their last activity are not returned.
    """
    sql = f"""
        SELECT id, project, last FROM (
          SELECT sessions.id, sessions.project, MAX(sessions.updated_at,
            COALESCE((SELECT MAX(last_active_at) FROM activity
              WHERE session_id = sessions.id), '')) AS last
          FROM sessions WHERE sessions.status IN ('active', 'paused')) AS open
        WHERE last >= :since AND last < :until AND NOT EXISTS (
          SELECT 1 FROM summaries WHERE session_id = open.id AND made_at > open.last
            AND provider <> '{COMPACTION}')
        ORDER BY last, id
    """
    return store.rows(sql, {"since": since, "until": until})


def _entry(row: dict[str, Any]) -> Entry:
    return {**row, **{name: json.loads(row[name]) for name in _LISTS}}
