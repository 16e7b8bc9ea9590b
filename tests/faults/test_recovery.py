"""Jobs wait no longer than necessary after the store recovers or the clock is set back."""

import sqlite3
import time
from contextlib import closing

from tests.conftest import until
from tests.faults import oracle
from tests.faults.harness import SEED, Bench
from tests.integration.test_claims import DAYS_SECS, set_clock_back
from tests.payloads import SESSION_END, changed

EVENTS = oracle.mix(SEED, 40).all


def test_retries_are_due_when_the_store_answers_again(bench: Bench) -> None:
    """The backoff alone would make them wait an hour."""
    writer = bench.plain_writer()
    until(bench.home.database.exists, "no database")
    bench.push(EVENTS[:5])
    bench.settle(writer)
    with closing(sqlite3.connect(bench.home.database, timeout=10)) as locker:
        locker.execute("BEGIN IMMEDIATE")
        bench.push(EVENTS[5:])
        until(lambda: "will retry" in writer.text, "it is not locked")
        assert "(attempt 1, " in writer.text
        until(lambda: bench.accounts["retrying"] and not bench.to_be_done(), "nothing retries")
        for queue in ("high", "medium", "low"):
            for id in bench.redis.zrange(f"rq:scheduled:{queue}", 0, -1):
                bench.redis.zincrby(f"rq:scheduled:{queue}", 3600, id)
        locker.execute("ROLLBACK")
    bench.settle(writer)
    bench.assert_tables(EVENTS)
    assert not bench.redis.exists("hivepipe:trouble")


def test_a_session_ends_by_its_client_after_the_clock_was_set_back(bench: Bench) -> None:
    writer = bench.plain_writer()
    ahead_ns = time.time_ns() + DAYS_SECS * 10**9
    opening = (oracle.start(0, "inst-a"), oracle.prompt(1, oracle.SESSIONS[0], "inst-a"))
    bench.push(oracle.timed(opening, ahead_ns - 2 * oracle.STEP_NS))
    bench.settle(writer)
    set_clock_back(bench.redis, DAYS_SECS)
    until(lambda: "the clock was set back" in writer.text, "not noticed")
    end = changed(SESSION_END, session_id=oracle.SESSIONS[0], reason="logout")
    bench.push(oracle.timed((oracle.Fired(end, "inst-a"),), time.time_ns()))
    bench.settle(writer)
    (row,) = bench.home.rows("SELECT status, end_reason FROM sessions")
    assert row == {"status": "ended", "end_reason": "logout"}
