"""Usage of Claude's messages: each message once, in however many transcripts it is."""

import json
from collections.abc import Collection, Iterator
from typing import NamedTuple

from hivepipe.costs.tokens import BANDS, Rate, Tokens
from hivepipe.db.database import Database, Row
from hivepipe.db.listings import Entry, Listings
from hivepipe.db.unwritten_usage import Unseen, unseen
from hivepipe.transcripts.usage import Usage, merged


def record(db: Database, usage: Usage) -> None:
    """Insert the record of a message, or merge it into the stored one.

    A fork begins after the session whose messages it copied, and may be read before it.
    """
    parameters = {"message": usage.message_id, "request": usage.request_id}
    known = db.row(
        "SELECT * FROM usage WHERE message_id = :message AND request_id = :request", parameters
    )
    if known:
        before = _usage_of(known)
        is_older = _began_earlier(db, usage.session, before.session)
        usage = merged(usage, before) if is_older else merged(before, usage)
    sql = """
        INSERT INTO usage (message_id, request_id, session_id, agent_id, is_sidechain, is_replay,
          created_at, model, speed, region, input, output, cache_read, cache_write_5m,
          cache_write_1h, web_searches)
        VALUES (:message, :request, :session, :agent, :is_sidechain, :is_replay,
          :created_at, :model, :speed, :region, :input, :output, :cache_read, :cache_write_5m,
          :cache_write_1h, :web_searches)
        ON CONFLICT (message_id, request_id) DO UPDATE SET
          session_id = excluded.session_id, agent_id = excluded.agent_id,
          is_sidechain = excluded.is_sidechain, is_replay = excluded.is_replay,
          created_at = excluded.created_at, model = excluded.model, speed = excluded.speed,
          region = excluded.region, input = excluded.input, output = excluded.output,
          cache_read = excluded.cache_read, cache_write_5m = excluded.cache_write_5m,
          cache_write_1h = excluded.cache_write_1h, web_searches = excluded.web_searches
    """
    values = {
        "session": usage.session,
        "agent": usage.agent,
        "is_sidechain": usage.is_sidechain,
        "is_replay": usage.is_replay,
        "created_at": usage.time,
        "model": usage.rate.model,
        "speed": usage.rate.speed,
        "region": usage.rate.region,
        **usage.tokens._asdict(),
    }
    db.execute(sql, {**parameters, **values})


def _began_earlier(db: Database, session: str, other: str) -> bool:
    """Tell whether a session began before another one; False where that is not known."""
    if session == other:
        return False
    sql = """
        SELECT 1 FROM sessions AS one, sessions AS other
        WHERE one.id = :session AND other.id = :other AND one.created_at < other.created_at
    """
    return db.row(sql, {"session": session, "other": other}) is not None


def _usage_of(row: Row) -> Usage:
    tokens = tokens_of(row)
    return Usage(
        message_id=row["message_id"],
        request_id=row["request_id"],
        session=row["session_id"],
        agent=row["agent_id"],
        time=row["created_at"],
        rate=rate_of(row, tokens.band),
        tokens=tokens,
        is_sidechain=bool(row["is_sidechain"]),
        is_replay=bool(row["is_replay"]),
    )


def tokens_of(row: Row | Entry) -> Tokens:
    """Return the tokens of a row, or of sums by the same names."""
    return Tokens(*(row[name] for name in Tokens._fields))


def rate_of(row: Row | Entry, band: int) -> Rate:
    """Return what decides the price of a row's message."""
    return Rate(row["model"], row["created_at"][:10], row["speed"], row["region"], band)


# Messages are added up within a quarter of an hour: no zone's day begins inside of one.
_QUARTER = "substr(usage.created_at, 1, 14) || (CAST(substr(usage.created_at, 15, 2) AS INT) / 15)"
_SUMS = ", ".join(f"SUM(usage.{name}) AS {name}" for name in Tokens._fields)
_PROMPT = "usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h"
BAND = f"""
    CASE {" ".join(f"WHEN {_PROMPT} > {size} THEN {size}" for size in sorted(BANDS, reverse=True))}
    ELSE 0 END
"""


class Charge(NamedTuple):
    """Messages of one rate within a quarter of an hour: time of the first, and their sum."""

    time: str
    session: str
    agent: str
    agent_type: str
    rate: Rate
    tokens: Tokens
    messages: int = 1  # 0: requests that are in no transcript


def charges(
    store: Listings, since: str = "", sessions: Collection[str] | None = None
) -> Iterator[Charge]:
    """Yield the messages since a UTC time in the store's format, of all sessions or of these.

    A side question replays messages of its parent, sometimes under other request ids. A message of
    the parent is not counted for the subagent, and among subagents it counts once. Last comes what
    Claude Code counted in addition to the messages.
    """
    which = "AND usage.session_id IN (SELECT value FROM json_each(:sessions))"
    sql = f"""
        SELECT MIN(usage.created_at) AS created_at, usage.session_id, usage.agent_id,
          agents.type AS agent_type, usage.model, usage.speed, usage.region, {BAND} AS band,
          COUNT(*) AS messages, {_SUMS}
        FROM usage LEFT JOIN agents ON agents.id = usage.agent_id
        WHERE usage.created_at >= :since {"" if sessions is None else which}
          AND NOT (usage.is_sidechain AND EXISTS (
            SELECT 1 FROM usage AS other WHERE other.message_id = usage.message_id
              AND (NOT other.is_sidechain
                OR (other.output, other.request_id) > (usage.output, usage.request_id))))
        GROUP BY {_QUARTER}, usage.session_id, usage.agent_id, usage.model, usage.speed,
          usage.region, band
        ORDER BY 1, usage.session_id, usage.agent_id
    """
    for row in store.each(sql, {"since": since, "sessions": json.dumps([*(sessions or ())])}):
        yield Charge(
            time=row["created_at"],
            session=row["session_id"],
            agent=row["agent_id"],
            agent_type=row["agent_type"] or "",
            rate=rate_of(row, row["band"]),
            tokens=tokens_of(row),
            messages=row["messages"],
        )
    yield from map(charge_of, unseen(store, since, sessions))


def charge_of(rest: Unseen) -> Charge:
    """Return what no message shows as a charge without messages."""
    rate = Rate(rest.model, rest.time[:10])
    return Charge(rest.time, rest.session, "", "", rate, rest.tokens, messages=0)
