"""Tool call totals per session, copied from Redis into the store.

    hivepipe:active                set    sessions whose activity is not stored yet
    hivepipe:activity:<session>    hash   totals and last activity; written by hivepipe.guard.client
    hivepipe:calls:<session>       list   the last calls; written by hivepipe.guard.client

Totals are cumulative and only rise, so storing them twice does no harm. A session stays in the set
until some process has stored its newest activity.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from redis import Redis

from hivepipe.events.claude_code import valid_id
from hivepipe.queue.scripts import script

ACTIVE_KEY = "hivepipe:active"
TAKEN_KEY = "hivepipe:active:taken"  # key of older versions

_TAKE = script("take_activity", ACTIVE_KEY=ACTIVE_KEY, TAKEN_KEY=TAKEN_KEY)
_OPEN_CHARS = 33  # length of a call record without a result: see hivepipe.guard.client
_PROMPT = b"|"


@dataclass(frozen=True, slots=True)
class Activity:
    """Cumulative totals of one session; times are in milliseconds since 1970."""

    session: str
    since_ms: int
    last_ms: int
    work_ms: int  # time of the last sign of work, without ends of turns, or 0
    calls: int
    failed: int
    denied: int
    warned: int
    open_calls: int
    turn_is_open: bool
    waits_for: str  # what the session waits for from a person, or ""
    task: str
    profile: str
    hash: bytes  # hash of totals and calls in Redis


def has_activity(connection: Redis) -> bool:
    """Tell whether any session has activity that is not yet committed to the store."""
    return bool(connection.exists(ACTIVE_KEY, TAKEN_KEY))


def take_activity(connection: Redis, stored: Iterable[Activity] = ()) -> list[Activity]:
    """Remove `stored`, committed already, from the set; return the activity not stored yet.

    A session whose activity is invalid is removed from the set.
    """
    arguments = [value for each in stored for value in (each.session, each.hash)]
    found: Any = connection.eval(_TAKE, 0, *arguments)
    read = [(each, _read(each[0].decode("utf-8", "replace"), *each[1:])) for each in found]
    invalid = [(each[0], each[-1]) for each, activity in read if not activity]
    if invalid:
        connection.eval(_TAKE, 0, *itertools.chain(*invalid))
    return [activity for _, activity in read if activity]


def _read(session: str, fields: list[bytes], calls: list[bytes], hash: bytes) -> Activity | None:
    """Return the activity of one session, or None if its id is invalid or its totals are gone."""
    totals = dict(zip(fields[::2], fields[1::2], strict=True))
    since_ms = _number(totals, "since_ms")
    if valid_id(session) != session or not since_ms:
        return None
    latest = calls[len(calls) - calls[::-1].index(_PROMPT) :] if _PROMPT in calls else calls
    return Activity(
        session=session,
        since_ms=since_ms,
        last_ms=_number(totals, "last_ms"),
        work_ms=_number(totals, "work_ms"),
        calls=_number(totals, "calls"),
        failed=_number(totals, "failed"),
        denied=_number(totals, "denied"),
        warned=_number(totals, "warned"),
        open_calls=sum(len(call) == _OPEN_CHARS for call in latest),
        turn_is_open=totals.get(b"turn") == b"1",
        waits_for=totals.get(b"waits", b"").decode("utf-8", "replace"),
        task=valid_id(totals.get(b"task", b"").decode("utf-8", "replace")),
        profile=valid_id(totals.get(b"profile", b"").decode("utf-8", "replace")),
        hash=hash,
    )


def _number(totals: dict[bytes, bytes], name: str) -> int:
    text = totals.get(name.encode(), b"0")
    return int(text) if text.isdigit() else 0
