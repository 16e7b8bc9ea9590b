"""Usage that Claude Code counted but no message has: compactions, titles. Forks count once."""

from typing import Any

import pytest

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.db import unwritten_usage, usage
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.transcripts.totals import Totals
from hivepipe.transcripts.usage import Usage
from tests.unit.test_transcripts import totals_of_records

TIME = "2026-11-22T10:00:00.000Z"
EACH = Tokens(10, 1, 30, 20)
MODEL = "claude-opus-5"
BEGAN_MS = 1_795_490_304_393  # from a real line


def times(number: int) -> Tokens:
    return Tokens(*(number * count for count in EACH))


def record_messages(db: Database, session: str, number: int, agent: str = "") -> None:
    for _ in range(number):
        id = f"m{len(db.rows('SELECT 1 FROM usage'))}"
        record = Usage(id, "r", session, agent, TIME, Rate(MODEL, TIME[:10]), EACH)
        usage.record(db, record)


def record_count(db: Database, session: str, secs: int, requests: int, start: int = 1) -> None:
    model = f"{MODEL}[1m]"
    unwritten_usage.record(db, session, start, secs * 1000, model, TIME, times(requests))


def unseen_requests(db: Database, session: str = "") -> dict[str, int]:
    """Return by session how many requests are in no transcript."""
    with listings(db.path) as store:
        chosen = [session] if session else None
        unseen = unwritten_usage.unseen(store, sessions=chosen)
        rest = {each.session: each.tokens for each in unseen}
        charged = [each for each in usage.charges(store, sessions=chosen) if not each.messages]
        assert {each.session: each.tokens for each in charged} == rest
    assert all(tokens == times(tokens.output) for tokens in rest.values())
    return {session: tokens.output for session, tokens in rest.items()}


def test_counted_usage_without_a_message_is_found_and_added_for_resumed_runs(db: Database) -> None:
    record_messages(db, "a", 2)
    record_messages(db, "a", 1, "agent")
    record_count(db, "a", 5, 2)
    assert unseen_requests(db) == {}  # the count is of the first run, and the messages have more
    record_count(db, "a", 9, 5)
    record_count(db, "a", 9, 5)
    assert unseen_requests(db) == unseen_requests(db, "a") == {"a": 2}
    assert unseen_requests(db, "b") == {}
    # A session whose last count was lost is counted from its resumed run on.
    record_count(db, "a", 2, 3, start=2)
    assert unseen_requests(db) == {"a": 5}


def test_usage_that_a_fork_took_over_counts_once(db: Database) -> None:
    record_messages(db, "parent", 2)
    record_count(db, "parent", 5, 3)  # a compaction
    record_messages(db, "fork", 4)
    record_count(db, "fork", 9, 3 + 4 + 1)
    record_count(db, "parent", 12, 3)  # the parent continues beside the fork
    assert unseen_requests(db) == {"parent": 1, "fork": 1}
    assert unseen_requests(db, "fork") == {"fork": 1}


def test_sessions_without_a_start_are_no_forks_of_each_other(db: Database) -> None:
    record_count(db, "a", 5, 3, start=0)
    record_count(db, "b", 9, 4, start=0)
    assert unseen_requests(db) == {"a": 3, "b": 4}


@pytest.mark.parametrize("order", [("parent", "fork"), ("fork", "parent")])
def test_a_message_belongs_to_the_session_that_began_first(
    db: Database, order: tuple[str, str]
) -> None:
    """Copies in a fork by `-p --fork-session` name no origin, and may be read first."""
    for session, began in (("parent", "2026-11-22T09:00"), ("fork", "2026-11-22T09:30")):
        row = {"session": session, "began": began}
        db.execute(
            "INSERT INTO sessions (id, status, created_at) VALUES (:session, 'ended', :began)", row
        )
    for session in order:
        usage.record(db, Usage("m", "r", session, "", TIME, Rate(MODEL, TIME[:10]), EACH))
    record_count(db, "parent", 5, 1)
    assert unseen_requests(db) == {}


def test_counts_are_read_from_a_cost_state_line() -> None:
    models: dict[str, Any] = {
        MODEL: {"inputTokens": 10, "outputTokens": 1, "cacheReadInputTokens": 30,
                "cacheCreationInputTokens": 20, "cacheCreationEphemeral1hInputTokens": 5,
                "webSearchRequests": 2, "costUSD": 1.0},
        "broken": 3,
    }  # fmt: skip
    line = {"type": "cost-state", "sessionId": "s", "startTime": BEGAN_MS, "totalDuration": 8}
    user = {"type": "user", "sessionId": "s", "uuid": "u", "timestamp": TIME}
    totals = totals_of_records(user, {**line, "modelUsage": models})
    facts = totals.take_facts()
    expected = {MODEL: Tokens(10, 1, 30, 15, 5, 2), "broken": Tokens()}
    assert facts.counts == [(BEGAN_MS, 8, expected, TIME)]
    assert isinstance(Totals.load(totals.dump()), Totals)
