"""A lease ends while its writer lives, after a suspend or a step of the clock."""

import sys
from pathlib import Path

import pytest

from hivepipe.queue.reconciler import reconcile
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.outcome import outcome_of
from tests.rounds import SEED

RQ = str(Path(sys.executable).with_name("rq"))
EVENTS = oracle.mix(SEED, 40).all


@pytest.mark.parametrize("point", ["claimed", "committed"])
@pytest.mark.parametrize("by_rq", [False, True])
def test_jobs_with_an_expired_lease_count_once(bench: Bench, point: str, by_rq: bool) -> None:
    """Neither the reconciler nor `drain` takes them. `rq info` requeues them for a second run."""
    bench.push(EVENTS)
    writer = bench.writer(pause=point)
    writer.wait_for_point(point)
    held = bench.expire_leases()
    assert held > 50
    if by_rq:
        outcome_of([RQ, "info", "--raw", "-u", bench.server.url], bench.home.env, check=True)
        assert bench.accounts["running"] < held, "it was to take them"
    else:
        assert reconcile(bench.redis, is_shared=False) == 0
        bench.command("drain")
        assert bench.accounts["running"] == held
    writer.resume()
    bench.settle(writer)
    bench.assert_tables(EVENTS)
    bench.assert_accounts(oracle.job_count(EVENTS))
    assert bench.dead() == {}
