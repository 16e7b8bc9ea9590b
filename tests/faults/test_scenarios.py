"""Scenarios on a whole stack: real hooks, `hivepipe up` and the real command line."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import until
from tests.faults import oracle
from tests.faults.harness import Bench, shell
from tests.faults.oracle import Fired
from tests.rounds import ASKED_ROUNDS

SESSION = oracle.SESSIONS[0]
LONG_SECS = 30 if ASKED_ROUNDS >= 25 else 3
UNWELL_SECS = 10  # after this time `status` reports the store as unhealthy


@pytest.fixture
def stack(bench: Bench) -> Iterator[Bench]:
    """A bench with a whole stack and one started session."""
    bench.up()
    bench.fire([oracle.start(0, "inst-a")], 1)
    bench.settle()
    yield bench
    bench.down()


@contextmanager
def locked(bench: Bench) -> Iterator[None]:
    with shell(bench) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("COMMIT")


def log(bench: Bench) -> str:
    return (bench.home.path / "logs" / "writer.log").read_text()


def status(bench: Bench) -> dict[str, Any]:
    """Return the status, which is unhealthy because the scheduler is suspended."""
    return dict(json.loads(bench.command("status", "--json", expect=1)))


def check(bench: Bench, *events: Fired) -> None:
    every = [oracle.start(0, "inst-a"), *events]
    assert bench.dead() == {}
    bench.assert_tables(oracle.timed(every), exact_times=False)
    bench.assert_accounts(oracle.job_count(every))


# ---- scenario A


def test_no_job_fails_during_a_lock_of_half_a_minute(stack: Bench) -> None:
    """No job fails; `status` is degraded at first, unhealthy after 10 s, and healthy afterwards."""
    before = stack.pids()
    events = [
        oracle.agent(1, SESSION, "inst-a"),
        oracle.edit(2, SESSION, "inst-a"),
        oracle.prompt(3, SESSION, "inst-a"),
    ]
    jobs = oracle.job_count([oracle.start(0, "inst-a"), *events]) - 1
    began = time.monotonic()
    with locked(stack):
        stack.fire(events[:2], 1)
        until(lambda: status(stack)["store_trouble"], "no word of it")
        time.sleep(max(began + LONG_SECS - time.monotonic(), 0))
        # With a short lock, move the begin of the trouble into the past.
        if LONG_SECS <= UNWELL_SECS:
            since = float(stack.redis.hget("hivepipe:trouble", "since"))
            stack.redis.hset("hivepipe:trouble", "since", str(since - UNWELL_SECS))
        stack.fire(events[2:], 1)
        said = status(stack)
        assert said["store_trouble"]["secs"] > UNWELL_SECS
        assert "locked" in said["store_trouble"]["reason"]
        assert "has not answered for" in stack.command("status", expect=1)
        held = (said["accounts"][name] for name in ("waiting", "running", "retrying"))
        assert sum(held) == jobs
        assert stack.dead() == {}
    stack.settle(secs=40)
    check(stack, *events)
    assert status(stack)["store_trouble"] is None
    assert stack.pids() == before
    retries = [line for line in log(stack).splitlines() if "will retry: insert_agent" in line]
    # 0.1, 0.2, 0.4, 1, 2, 4, 8, 16 s, each with a busy wait of 0.1 s
    assert 4 <= len(retries) <= 9


def test_a_new_stack_clears_the_store_trouble_of_the_last_one(stack: Bench) -> None:
    """The new writer removes the trouble that the previous one reported."""
    with locked(stack):
        stack.fire([oracle.edit(1, SESSION, "inst-a")], 1)
        until(lambda: status(stack)["store_trouble"], "no word of it")
        stack.down()
    stack.command("up", "-d")
    until(lambda: not stack.redis.exists("hivepipe:trouble"), "the news stays", secs=10)
    stack.settle(secs=30)


# ---- scenario B


def test_a_job_of_a_deleted_swarm_fails_until_it_is_restored(stack: Bench) -> None:
    """The failed job names the swarm and the steps to take; after them a retry succeeds."""
    agent = oracle.agent(1, SESSION, "inst-a")
    with shell(stack) as other:
        other.row_factory = sqlite3.Row
        row = dict(other.execute("SELECT * FROM swarms").fetchone())
        other.execute("DELETE FROM swarms")
        stack.fire([agent], 1)
        until(stack.dead, "no failed job", 20)
        stack.settle()
        ((job_id, reason),) = stack.dead().items()
        assert f"swarm {row['id']} does not exist" in reason
        (listed,) = json.loads(stack.command("failed", "list", "--json"))["failed"]
        assert listed["missing"] == {"kind": "swarm", "id": row["id"]}
        shown = stack.command("failed", "show", job_id)
        assert f"missing swarm: {row['id']}" in shown
        assert "restore the swarm" in shown
        assert f"hivepipe failed retry {job_id}" in shown
        assert status(stack)["accounts"]["failed"] == 1
        stack.command("failed", "retry", job_id)
        until(stack.dead, "no failed job again", 20)
        names = ", ".join(row)
        other.execute(f"INSERT INTO swarms ({names}) VALUES (:{', :'.join(row)})", row)
    assert "1 sent back" in stack.command("failed", "retry", job_id)
    stack.settle()
    check(stack, agent)
