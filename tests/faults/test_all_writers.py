"""The writer, `rq worker`, the direct path and `drain` store the same rows."""

import json
import signal
import sys
import threading
import time

import pytest

from tests.conftest import COMMANDS, QUEUES, Process, until
from tests.faults import oracle
from tests.faults.harness import Bench, random_of
from tests.faults.oracle import Fired
from tests.rounds import SEED, rounds

# a stock worker that is killed after the commit and before RQ records the success
DIES_AFTER_ITS_FIRST_JOB = """
import os, signal, sys
from rq import SimpleWorker
SimpleWorker.handle_job_success = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
from rq.cli import main
sys.argv[0] = "rq"
main()
"""


def balance(bench: Bench) -> dict[str, int]:
    """Return the accounts, in which `accepted` equals the sum of all others."""
    figures = bench.accounts
    assert figures["accepted"] == sum(n for name, n in figures.items() if name != "accepted")
    return figures


@pytest.mark.parametrize("asked", ["at once", "when RQ has forgotten them"])
def test_a_stock_workers_jobs_are_counted_as_done(bench: Bench, asked: str) -> None:
    mix = oracle.mix(SEED, 40)
    events = oracle.timed((*mix.opening, *mix.bulk[:4]))
    jobs = oracle.job_count(events)
    bench.push(events)
    bench.run_stock_worker()
    if asked != "at once":  # Redis does this a minute after the job.
        for queue in QUEUES:
            for job_id in bench.redis.zrange(f"rq:finished:{queue}", 0, -1):
                bench.redis.delete(b"rq:job:" + job_id)
    for _ in range(2):
        assert balance(bench)["done"] == jobs
    bench.assert_tables(events)
    bench.assert_accounts(jobs, archived=oracle.slow_count(events))
    said = json.loads(bench.command("status", "--json", expect=1))
    assert said["accounts"]["done"] == jobs


def test_a_job_that_a_killed_stock_worker_had_done_is_counted_once(bench: Bench) -> None:
    """The job is done but RQ shows it as started; hivepipe's writer takes it and does nothing."""
    events = oracle.timed([oracle.start(0, "inst-a"), oracle.edit(1, oracle.SESSIONS[0], "inst-a")])
    bench.push(events)
    command = (sys.executable, "-I", "-c", DIES_AFTER_ITS_FIRST_JOB)
    worker = bench.stock_worker("-w", "rq.SimpleWorker", command=command)
    worker.start()
    until(lambda: not worker.is_running, "the stock worker lives", 60)
    assert worker.end() == -signal.SIGKILL
    assert bench.applied() == 1
    figures = balance(bench)
    assert (figures["done"], figures["running"]) == (0, 1)
    let_the_lease_end(bench)
    writer = bench.plain_writer()
    bench.settle(writer)
    for _ in range(2):
        balance(bench)
        bench.assert_accounts(oracle.job_count(events))
    bench.assert_tables(events)
    assert bench.redis.exists("hivepipe:executed") == 0


def let_the_lease_end(bench: Bench) -> None:
    """Expire RQ's lease of the job and its record of the worker."""
    bench.expire_leases()
    for key in bench.redis.smembers("rq:workers"):
        bench.redis.delete(key)


def test_a_done_job_that_failed_and_was_discarded_counts_as_discarded(bench: Bench) -> None:
    """RQ can fail a job after its effect; the accounts contain it once all the same."""
    events = oracle.timed([oracle.start(0, "inst-a")])
    bench.push(events)
    (job_id,) = bench.redis.lrange("rq:queue:high", 0, -1)
    bench.redis.sadd("hivepipe:executed", job_id)
    bench.redis.lrem("rq:queue:high", 1, job_id)
    bench.redis.hset(b"rq:job:" + job_id, "status", "failed")
    bench.redis.zadd("rq:failed:high", {job_id: -1})
    assert balance(bench)["failed"] == 1
    bench.command("failed", "discard", "--all", "--yes")
    for _ in range(2):
        assert balance(bench)["discarded"] == 1
        assert bench.accounts["done"] == 0


def test_all_writers_at_once_store_the_right_rows(bench: Bench) -> None:
    """A single writer is only faster; the rows are right with any number of writers."""
    events = oracle.mix(SEED, 40 * rounds(1))
    writer = bench.plain_writer()
    stock = [bench.stock_worker(), bench.stock_worker("-w", "rq.SimpleWorker")]
    for worker in stock:
        worker.start()
    until(lambda: bench.redis.scard("rq:workers") == 3, "not all have come")
    bench.fire(events.opening, 1)
    bench.settle(writer)
    rng = random_of("paths")
    queued: list[Fired] = []
    direct: list[Fired] = []
    for event in events.bulk:
        (direct if rng.random() < 0.2 else queued).append(event)
    feeders = [
        threading.Thread(target=bench.fire, args=(queued, 10)),
        threading.Thread(target=bench.fire, args=(direct, 5), kwargs={"USE_QUEUE": "false"}),
    ]
    for feeder in feeders:
        feeder.start()
    drains = 0
    while any(feeder.is_alive() for feeder in feeders):
        drain(bench)
        drains += 1
    for feeder in feeders:
        feeder.join()
    bench.settle(writer, 60)
    bench.fire(events.closing, 1)
    bench.settle(writer, 60)
    by_stock = sum(worker_done(process) for process in stock)
    figures = balance(bench)
    print(f"{figures['done']} jobs by Redis, {by_stock} of them stock; {drains} drains")
    assert by_stock > 0
    assert bench.dead() == {}
    bench.assert_tables(events.all, exact_times=False)
    assert bench.applied() == oracle.job_count(events.all) - oracle.slow_count(events.all)
    assert figures["done"] + sum(bench.handed_on().values()) == figures["accepted"]
    assert writer.end() == 0


def drain(bench: Bench) -> None:
    """Run `drain`; it may fail on a busy database or a file that the writer takes."""
    COMMANDS.run(["drain"], "", bench.home.env, bench.home.project, 60)
    time.sleep(0.2)


def worker_done(process: Process) -> int:
    return process.text.count("Job OK")
