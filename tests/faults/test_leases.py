"""A lease ends while its writer lives, after a suspend or a step of the clock."""

import subprocess
import sys
from pathlib import Path

import pytest

from hivepipe.queue.reconciler import reconcile
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.rounds import SEED

RQ = str(Path(sys.executable).with_name("rq"))
EVENTS = oracle.mix(SEED, 40).all


@pytest.mark.parametrize("point", ["claimed", "committed"])
def test_jobs_of_a_running_writer_are_not_taken(bench: Bench, point: str) -> None:
    """Neither the reconciler nor a second writer takes them; their writer finishes them."""
    bench.push(EVENTS)
    writer = bench.writer(pause=point)
    writer.wait_for_point(point)
    held = bench.expire_leases()
    assert held > 50
    assert reconcile(bench.redis, is_shared=False) == 0
    bench.command("drain")
    assert bench.accounts["running"] == held
    writer.resume()
    bench.settle(writer)
    bench.assert_tables(EVENTS)
    bench.assert_accounts(oracle.job_count(EVENTS))
    assert bench.dead() == {}


@pytest.mark.parametrize("point", ["claimed", "committed"])
def test_the_clean_up_of_rq_doubles_nothing(bench: Bench, point: str) -> None:
    """`rq info` requeues jobs with an expired lease: they are executed again and count once."""
    bench.push(EVENTS)
    writer = bench.writer(pause=point)
    writer.wait_for_point(point)
    held = bench.expire_leases()
    subprocess.run(
        [RQ, "info", "--raw", "-u", bench.server.url],
        env=bench.home.env,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert bench.accounts["running"] < held, "it was to take them"
    writer.resume()
    bench.settle(writer)
    bench.assert_tables(EVENTS)
    bench.assert_accounts(oracle.job_count(EVENTS))
    assert bench.dead() == {}
