"""Scenarios on a whole stack: real hooks, `hivepipe up` and the real command line."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import until
from tests.faults import oracle
from tests.faults.harness import Bench, shell
from tests.faults.oracle import Fired

SESSION = oracle.SESSIONS[0]


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


def test_a_new_stack_clears_the_store_trouble_of_the_last_one(stack: Bench) -> None:
    """The new writer removes the trouble that the previous one reported."""
    with locked(stack):
        stack.fire([oracle.edit(1, SESSION, "inst-a")], 1)
        until(lambda: status(stack)["store_trouble"], "no word of it")
        stack.down()
    stack.command("up", "-d")
    until(lambda: not stack.redis.exists("hivepipe:trouble"), "the news stays", secs=10)
    stack.settle(secs=30)


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
