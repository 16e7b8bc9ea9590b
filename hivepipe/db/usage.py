"""Usage of Claude's messages. Each message counts once, however many transcripts have it."""

import json
from collections.abc import Collection, Iterator
from typing import NamedTuple

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.db.database import Database, Row, new_values
from hivepipe.db.listings import Entry, Listings
from hivepipe.db.unwritten_usage import Unseen, unseen
from hivepipe.db.usage_sums import SUMMED
from hivepipe.times import ns_of, stored_time
from hivepipe.transcripts.usage import Usage, merged


def record(db: Database, usage: Usage) -> None:
    """Insert the usage of a message, or merge the usage into the stored row.

    A message in several sessions belongs to the oldest session, even if a fork's copy is read
    first.
    """
    key = {"message_id": usage.message_id, "request_id": usage.request_id}
    known = db.row(
        "SELECT * FROM usage WHERE message_id = :message_id AND request_id = :request_id", key
    )
    if known:
        before = _usage_of(known)
        is_older = _began_earlier(db, usage.session, before.session)
        usage = merged(usage, before) if is_older else merged(before, usage)
    values = {
        "session_id": usage.session,
        "agent_id": usage.agent,
        "is_sidechain": usage.is_sidechain,
        "is_replay": usage.is_replay,
        "created_at": usage.time,
        "model": usage.rate.model,
        "speed": usage.rate.speed,
        "region": usage.rate.region,
        **usage.tokens._asdict(),
    }
    changes = f"(message_id, request_id) DO UPDATE SET {new_values(values)}"
    db.insert("usage", {**key, **values}, changes)


def _began_earlier(db: Database, session: str, other: str) -> bool:
    """Tell whether `session` began before `other`. Return False if this is unknown."""
    if session == other:
        return False
    sql = """
        SELECT 1 FROM sessions AS one, sessions AS other
        WHERE one.id = :session AND other.id = :other AND one.created_at < other.created_at
    """
    return db.row(sql, {"session": session, "other": other}) is not None


def _usage_of(row: Row) -> Usage:
    tokens = Tokens.of(row)
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


def rate_of(row: Row | Entry, band: int) -> Rate:
    """Return the rate of a row's message, whose prompt size is in `band` (`Tokens.band`)."""
    return Rate(row["model"], row["created_at"][:10], row["speed"], row["region"], band)


class Charge(NamedTuple):
    """The usage by messages with one rate in the quarter of an hour that begins at `time`."""

    time: str
    session: str
    agent: str
    agent_type: str
    rate: Rate
    tokens: Tokens
    messages: int = 1  # 0 if the usage belongs to no message


_QUARTER_NS = 15 * 60 * 10**9
_SUMS = ", ".join(f"SUM({name}) AS {name}" for name in Tokens._fields)
_LESS = ", ".join(f"-{name}" for name in Tokens._fields)
_KEY = "began, session_id, agent_id, model, speed, region, band"


def charges(
    store: Listings, since: str = "", sessions: Collection[str] | None = None
) -> Iterator[Charge]:
    """Yield the usage of all sessions, or only of `sessions`, since a UTC time as stored.

    The transcript of a side question repeats its parent's messages, sometimes with other request
    ids. Each message counts once: for the parent if the parent has it, else for one of the
    subagents. Charges for usage that is in no message come at the end.
    """
    of = "" if sessions is None else "AND session_id IN (SELECT value FROM json_each(:sessions))"
    # `+` disables the index on the session, because the other condition finds fewer rows.
    by_other = of.replace("session_id", "+session_id")
    sql = f"""
        WITH counted AS (
          SELECT {_KEY}, messages, {", ".join(Tokens._fields)} FROM usage_sums
            WHERE began >= :whole {of}
          UNION ALL SELECT {_KEY}, messages, {", ".join(Tokens._fields)} FROM (
            SELECT {SUMMED} FROM usage
            WHERE created_at >= :since AND created_at < :whole {by_other})
          UNION ALL SELECT {_KEY}, -messages, {_LESS} FROM (
            SELECT {SUMMED} FROM usage
            WHERE message_id IN (SELECT message_id FROM repeated_messages) AND created_at >= :since
              {by_other} AND is_sidechain AND EXISTS (
                SELECT 1 FROM usage AS other WHERE other.message_id = usage.message_id
                  AND (NOT other.is_sidechain
                    OR (other.output, other.request_id) > (usage.output, usage.request_id)))))
        SELECT began AS created_at, counted.session_id, agent_id, agents.type AS agent_type,
          counted.model, speed, region, band, SUM(messages) AS messages, {_SUMS}
        FROM counted LEFT JOIN agents ON agents.id = counted.agent_id
        GROUP BY began, counted.session_id, agent_id, counted.model, speed, region, band
        HAVING SUM(messages) > 0 ORDER BY began, counted.session_id, agent_id
    """
    values = {"since": since, "whole": _quarter_from(since)}
    for row in store.each(sql, {**values, "sessions": json.dumps([*(sessions or ())])}):
        yield Charge(
            time=row["created_at"],
            session=row["session_id"],
            agent=row["agent_id"],
            agent_type=row["agent_type"] or "",
            rate=rate_of(row, row["band"]),
            tokens=Tokens.of(row),
            messages=row["messages"],
        )
    yield from map(charge_of, unseen(store, since, sessions))


def charge_of(rest: Unseen) -> Charge:
    """Convert usage that belongs to no message into a charge."""
    rate = Rate(rest.model, rest.time[:10])
    return Charge(rest.time, rest.session, "", "", rate, rest.tokens, messages=0)


def _quarter_from(since: str) -> str:
    """Return the first quarter of an hour that begins at this time or later."""
    return stored_time(-(-ns_of(since) // _QUARTER_NS) * _QUARTER_NS) if since else ""
