"""`rq worker high medium low` with hivepipe's scheduler stores the rows of the oracle.

`test_mixed_load` and `test_orders` compare the writer's rows with them.

HIVEPIPE_TEST_ROUNDS sets the number of waves of events with faults.
"""

import json
import math
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from hivepipe.operations.declared import PERIODIC
from hivepipe.queue.client import RefusedError
from hivepipe.queue.spool import write_spool
from tests.conftest import QUEUES, Process, until
from tests.faults import oracle
from tests.faults.harness import Bench, random_of
from tests.outcome import outcome_of
from tests.rounds import SEED, rounds

LAUNCHER = Path(__file__).with_name("launch_scheduler.py")
STAND_INS = [row for row in PERIODIC if row.fallback_for]
SETTLE_SECS = 300.0


class StockStack:
    """A stock worker, and a scheduler with only those rows that replace hivepipe's workers.

    The rows have short intervals. No clean-up deletes what the events made.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        rows = [
            (row.name, min(row.interval_secs, 15), row.operation, row.fallback_for)
            for row in STAND_INS
        ]
        said = json.dumps({"rows": rows, "lock": 4, "home": str(bench.home.path)})
        command = [sys.executable, "-I", str(LAUNCHER), bench.server.address, said]
        root = bench.home.root
        self.scheduler = Process(command, root / "scheduler.log", bench.home.env, root)
        bench.writers.append(self.scheduler)
        self.worker = bench.stock_worker()

    def start(self) -> None:
        self.worker.start()
        self.scheduler.start()

    def keep(self) -> None:
        """Restart ended processes, as a Procfile's supervisor does."""
        for process in (self.worker, self.scheduler):
            if not process.is_running:
                process.start()

    def horses(self) -> list[int]:
        """Return the pids of the work horses, which survive a kill -9 of their worker."""
        said = outcome_of(["ps", "-o", "pid=", "--ppid", str(self.worker.pid)])
        return [int(pid) for pid in said.stdout.split()]

    def unfinished(self) -> list[object]:
        """Return the jobs of the events that are not done, and the files of the spool."""
        self.keep()
        with closing(self.bench.server.client()) as client:
            lists = [client.lrange(f"rq:queue:{queue}", 0, -1) for queue in QUEUES]
            for kind in ("wip", "scheduled"):
                lists += [client.zrange(f"rq:{kind}:{queue}", 0, -1) for queue in QUEUES]
        ids = {id.decode().partition(":")[0] for found in lists for id in found}
        return [*self.bench.home.spool, *(id for id in ids if len(id) == 32)]

    def settle(self) -> None:
        try:
            until(lambda: not self.unfinished(), "not settled", SETTLE_SECS)
        except pytest.fail.Exception:
            logs = self.scheduler.text[-1500:], self.worker.text[-1500:]
            pytest.fail("\n".join(map(str, ("not settled", *self.unfinished(), *logs))))


@pytest.fixture
def stock(bench: Bench) -> StockStack:
    return StockStack(bench)


def feed(bench: Bench, sent: list[Any], rng: random.Random) -> None:
    """Push jobs as hooks do; when Redis does not answer, and sometimes by chance, to the spool."""
    for jobs in filter(None, sent):
        try:
            if rng.random() < 0.1:
                raise RefusedError("chance")
            bench.send(jobs)
        except RefusedError:
            write_spool(f"{bench.home.path}/spool", time.time_ns(), jobs)


def kill_the_worker(stock: StockStack, rng: random.Random) -> None:
    """kill -9 of the worker, sometimes with its work horse, whose lease then ends at once."""
    horses = stock.horses()
    stock.worker.end(signal.SIGKILL)
    if rng.random() < 0.5:
        kill_all(horses)
        stock.bench.expire_leases()
    stock.worker.start()


def kill_the_work_horse(stock: StockStack, _rng: random.Random) -> None:
    kill_all(stock.horses())


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_the_scheduler(stock: StockStack, _rng: random.Random) -> None:
    stock.scheduler.end(signal.SIGKILL)
    stock.scheduler.start()


def lock_the_database(stock: StockStack, rng: random.Random) -> None:
    if not stock.bench.home.database.exists():
        return
    with closing(sqlite3.connect(stock.bench.home.database, timeout=30)) as db:
        db.isolation_level = None
        db.execute("BEGIN IMMEDIATE")
        time.sleep(rng.uniform(1, 9))
        db.execute("ROLLBACK")


def restart_redis(stock: StockStack, rng: random.Random) -> None:
    stock.bench.server.end(signal.SIGKILL if rng.random() < 0.7 else signal.SIGTERM)
    time.sleep(rng.uniform(0, 2))
    stock.bench.server.start()
    stock.keep()


FAULTS: tuple[Callable[[StockStack, random.Random], None], ...] = (
    kill_the_worker, kill_the_worker, kill_the_work_horse, kill_the_scheduler,
    lock_the_database, restart_redis,
)  # fmt: skip


@pytest.mark.long
def test_a_stock_worker_under_faults_stores_the_rows_of_the_oracle(
    bench: Bench, stock: StockStack
) -> None:
    rng = random_of("stock")
    mix = oracle.mix(SEED, 45 * rounds(1))
    sent = oracle.messages(mix.all, bench.project, bench.swarm)
    opening, bulk = sent[: len(mix.opening)], sent[len(mix.opening) : -len(mix.closing)]
    stock.start()
    feed(bench, opening, random.Random(1))
    stock.settle()
    size = math.ceil(len(bulk) / rounds(1))
    for at in range(0, len(bulk), size):
        hits = 0
        given = bench, bulk[at : at + size], random_of(f"stock-{at}")
        feeder = threading.Thread(target=feed, args=given)
        feeder.start()
        for fault in rng.sample(FAULTS, 4):
            time.sleep(rng.uniform(0.1, 1))
            hits += bool(stock.unfinished())
            fault(stock, rng)
        feeder.join()
        assert hits >= 1, "the faults came after the work"
        stock.settle()
    feed(bench, sent[-len(mix.closing) :], rng)
    stock.settle()
    assert bench.dead() == {}
    bench.assert_tables(mix.all)
    accounts = bench.accounts
    accepted = accounts.pop("accepted")
    assert accepted == sum(accounts.values())
    # Each end of a session is followed by an archiving and a clean-up, which may still wait.
    followed = accepted - len({job.id for jobs in sent for job in jobs})
    assert 0 <= followed <= 2 * sum(event.name == "SessionEnd" for event in mix.all)
