"""Real schedulers: several at once, stopped ones, without Redis, and with an emptied Redis."""

import json
import signal
import sqlite3
import sys
import time
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hivepipe.jobs.envelope import read_envelope
from hivepipe.jobs.schedule_table import Periodic
from hivepipe.queue import ticks
from hivepipe.queue.claims import accounts
from hivepipe.queue.job_data import envelope_text
from hivepipe.worker.scheduler import TickScheduler
from tests.conftest import Process, until
from tests.faults.harness import Bench, random_of
from tests.rounds import rounds

LAUNCHER = Path(__file__).with_name("launch_scheduler.py")
QUICK = ("quick", 1, "cleanup_agents")  # executed by the writer
SLOW = ("tardy", 2, "prune")  # executed by the slow worker
DAILY = ("daily", 86_400, "cleanup_agents")
LOCK_SECS = 4
SLACK_SECS = 60  # beyond the interval, as the plan allows


class Schedulers:
    """Schedulers of one home."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.made = 0

    def start(self, *rows: tuple[str, int, str]) -> Process:
        said = {"rows": rows, "lock": LOCK_SECS}
        self.made += 1
        made = Process(
            [sys.executable, "-I", str(LAUNCHER), self.bench.server.address, json.dumps(said)],
            self.bench.home.root / f"scheduler{self.made}.log",
            self.bench.home.env,
            self.bench.home.root,
        )
        self.bench.writers.append(made)
        made.start()
        return made

    def slots(self, name: str) -> list[dict[str, Any]]:
        return self.bench.home.rows(f"SELECT * FROM slots WHERE name = '{name}' ORDER BY id")

    def wait_for_first(self, name: str) -> None:
        until(lambda: self.slots(name), f"no slot of {name}")

    def wait_for_more(self, name: str, more: int, secs: float = 60) -> None:
        wanted = len(self.slots(name)) + more
        until(lambda: len(self.slots(name)) >= wanted, f"no {more} more of {name}", secs)

    def assert_regular(self, name: str, interval_secs: int) -> None:
        """No slot is executed twice, and no gap exceeds the interval by more than a minute."""
        found = self.slots(name)
        assert all(row["executions"] == 1 for row in found)
        numbers = [row["slot"] for row in found]
        assert numbers == sorted(set(numbers))
        times = [datetime.fromisoformat(row["executed_at"]).timestamp() for row in found]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        print(f"{name}: {len(found)} slots, gaps {[round(gap, 1) for gap in gaps]}")
        assert max(gaps) <= interval_secs + SLACK_SECS


@pytest.fixture
def schedulers(bench: Bench) -> Schedulers:
    return Schedulers(bench)


def acting(schedulers: list[Process], bench: Bench) -> Process | None:
    """Return the scheduler whose log says that it holds the lock."""
    holder = (bench.redis.get("rq:scheduler_lock") or b"-").decode()
    return next((each for each in schedulers if f"scheduler {holder} is active" in each.text), None)


def slot_waiting(bench: Bench) -> int:
    """Return the slot of the waiting tick `quick`, or 0 without one."""
    data = bench.redis.hget("rq:job:tick-quick", "data")
    return (read_envelope(envelope_text(data)).slot or 0) if data else 0


def test_a_tick_has_the_marker_and_is_claimed_like_any_job(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    scheduler = schedulers.start(QUICK)
    until(lambda: bench.redis.llen("rq:queue:medium"), "no tick")
    scheduler.end()
    tick = bench.redis.hgetall("rq:job:tick-quick")
    assert tick[b"hp"] == b"1"
    assert tick[b"result_ttl"] == b"-1"
    sent = read_envelope(envelope_text(tick[b"data"]))
    assert (sent.operation, sent.payload["name"]) == ("tick", "quick")
    slot = sent.slot
    bench.settle(bench.plain_writer())
    assert [row["slot"] for row in schedulers.slots("quick")] == [slot]
    ids = {row["job_id"] for row in bench.home.rows("SELECT job_id FROM applied")}
    assert f"quick-{slot}" in ids
    assert not any("tick" in job_id for job_id in ids)
    kept = bench.redis.hgetall("rq:job:tick-quick")
    assert kept[b"status"] == b"finished"
    assert bench.redis.ttl("rq:job:tick-quick") == -1
    figures = accounts(bench.redis)
    assert figures["accepted"] == figures["done"] > 0
    assert int(bench.redis.get("hivepipe:periodic")) == figures["accepted"]


def test_a_tick_that_is_due_again_while_a_stock_worker_has_it_is_counted_twice(
    bench: Bench,
) -> None:
    """Otherwise `status` would miss a job for ever, because a tick's id never changes."""
    row = Periodic("quick", 1, "cleanup_agents", "")
    TickScheduler(bench.redis, [row])._make(row, time.time() - 10)
    assert ticks.fire(bench.redis, row, time.time())
    claimed = bench.redis.lpop("rq:queue:medium")  # a worker has claimed it
    assert ticks.fire(bench.redis, row, time.time() + 2)
    bench.redis.rpush("rq:queue:medium", claimed)  # the worker executes it, and the next one
    bench.run_stock_worker()
    figures = accounts(bench.redis)
    assert figures["accepted"] == figures["done"] >= 3


def test_a_doubled_tick_has_one_effect(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    bench.plain_writer()
    row = Periodic("quick", 3600, "cleanup_agents", "")
    now = time.time()
    TickScheduler(bench.redis, [row])._make(row, now)
    assert ticks.fire(bench.redis, row, now + 1)
    assert not ticks.fire(bench.redis, row, now + 1)  # another scheduler, a moment later
    bench.settle()
    again = bench.redis.hget("rq:job:tick-quick", "data")
    bench.redis.rpush("rq:queue:medium", "tick-quick", "tick-quick")
    bench.redis.rpush("hivepipe:bell", 1)
    until(lambda: not bench.redis.llen("rq:queue:medium"), "not taken")
    bench.settle()
    assert bench.redis.hget("rq:job:tick-quick", "data") == again
    (only,) = schedulers.slots("quick")
    assert only["executions"] == 1


def test_an_executed_slot_of_slow_work_is_not_executed_again(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    writer, _ = bench.plain_writer(), bench.worker("slow")
    scheduler = schedulers.start(("tardy", 3600, "prune"))
    until(lambda: schedulers.slots("tardy"), "no slot")
    scheduler.end()
    bench.settle(writer)
    bench.redis.delete(*bench.redis.keys("rq:job:tardy-*"))  # as after a minute
    bench.redis.rpush("rq:queue:medium", "tick-tardy")
    bench.redis.rpush("hivepipe:bell", 1)
    until(lambda: not bench.redis.llen("rq:queue:medium"), "not taken")
    bench.settle(writer)
    assert not bench.redis.keys("rq:job:tardy-*")
    (only,) = schedulers.slots("tardy")
    assert only["executions"] == 1


def test_while_no_writer_is_there_one_tick_waits(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    schedulers.start(("quick", 1, "cleanup_agents"))
    before = until(lambda: slot_waiting(bench), "no tick")
    until(lambda: slot_waiting(bench) > before + 3, "the slots do not go on")
    assert bench.redis.lrange("rq:queue:medium", 0, -1) == [b"tick-quick"]
    writer = bench.plain_writer()
    until(lambda: len(schedulers.slots("quick")) >= 3, "no slots")
    assert schedulers.slots("quick")[0]["slot"] > before + 3
    schedulers.assert_regular("quick", 1)
    bench.writers[0].end()
    bench.settle(writer)
    assert accounts(bench.redis)["accepted"] == accounts(bench.redis)["done"]


def test_three_schedulers_one_acts_and_another_takes_over(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    bench.plain_writer()
    crew = [schedulers.start(QUICK) for _ in range(3)]
    for _ in range(rounds(1)):
        schedulers.wait_for_more("quick", 2)
        first = until(lambda: acting(crew, bench), "nobody acts")
        first.end(signal.SIGKILL)
        schedulers.wait_for_more("quick", 1)
        second = until(lambda: acting([c for c in crew if c.is_running], bench), "nobody acts")
        assert second is not first
        first.start()
    schedulers.wait_for_more("quick", 1)
    schedulers.assert_regular("quick", QUICK[1])


def test_a_scheduler_that_ends_releases_its_lock(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        scheduler = schedulers.start(QUICK)
        until(lambda: bench.redis.exists("rq:scheduler_lock"), "no lock")
        assert scheduler.end(number) == 0
        assert not bench.redis.exists("rq:scheduler_lock")


def test_a_scheduler_that_was_stopped_for_long_stays_passive(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    bench.plain_writer()
    first = schedulers.start(QUICK)
    schedulers.wait_for_more("quick", 1)
    first.signal(signal.SIGSTOP)
    second = schedulers.start(QUICK)
    until(lambda: acting([second], bench), "nobody took over")
    first.signal(signal.SIGCONT)
    schedulers.wait_for_more("quick", 3)
    assert acting([first, second], bench) is second
    assert first.end() == 0
    assert acting([second], bench) is second  # its lock still exists
    schedulers.assert_regular("quick", QUICK[1])


def empty(bench: Bench, _crew: list[Process]) -> None:
    bench.redis.flushall()


def kill_and_lose_its_file(bench: Bench, _crew: list[Process]) -> None:
    bench.server.restart_empty()


def change_to_another(bench: Bench, crew: list[Process]) -> None:
    """`hivepipe up -d --redis-url`: all processes restart with an empty Redis."""
    for process in crew:
        process.end()
    kill_and_lose_its_file(bench, crew)
    for process in crew:
        process.start()


def test_redis_removed_at_random_skips_and_doubles_no_slot(schedulers: Schedulers) -> None:
    """tests/unit/test_slots.py tests the same with an artificial clock and counts every slot."""
    bench = schedulers.bench
    writer, slow = bench.plain_writer(), bench.worker("slow")
    crew = [schedulers.start(QUICK, SLOW), slow, writer]
    rng = random_of("redis removed")
    for _ in range(rounds(4)):
        schedulers.wait_for_more("quick", 1)
        ticks.trigger(bench.redis, "quick", "session_end")
        time.sleep(rng.uniform(0, 2))
        rng.choice((empty, kill_and_lose_its_file, change_to_another))(bench, crew)
    schedulers.wait_for_more("quick", 2)
    schedulers.wait_for_more("tardy", 1)
    schedulers.assert_regular("quick", QUICK[1])
    schedulers.assert_regular("tardy", SLOW[1])
    assert schedulers.slots("quick")[-1]["slot"] <= time.time() // QUICK[1]
    assert all(process.is_running for process in crew)


def test_overdue_rows_run_at_the_start_and_others_do_not(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    writer = bench.plain_writer()
    first = schedulers.start(DAILY, ("hourly", 3600, "cleanup_agents"))
    schedulers.wait_for_first("daily")
    schedulers.wait_for_first("hourly")
    first.end()
    bench.settle(writer)
    writer.end()
    with closing(sqlite3.connect(bench.home.database)) as store, store:
        store.execute("UPDATE slots SET slot = slot - 1 WHERE name = 'hourly'")
        store.execute("DELETE FROM applied WHERE job_id LIKE 'hourly-%'")
    bench.redis.delete(*bench.redis.keys("rq:job:hourly-*"))  # as after an hour
    bench.plain_writer()
    row = Periodic("hourly", 3600, "cleanup_agents", "")
    ticks.set_due(bench.redis, row, time.time() - 1000)  # it was due while no scheduler ran
    schedulers.start(DAILY, ("hourly", 3600, "cleanup_agents"))
    schedulers.wait_for_more("hourly", 1)
    assert len(schedulers.slots("daily")) == 1


def test_removed_and_changed_rows_leave_no_ticks(schedulers: Schedulers) -> None:
    bench = schedulers.bench
    old = schedulers.start(("gone", 2, "cleanup_agents"), ("changed", 86_400, "cleanup_agents"))
    until(lambda: bench.redis.llen("rq:queue:medium") == 2, "no ticks")
    old.end()
    bench.redis.zadd("rq:scheduler:scheduled_jobs", {"somebody-elses": 1.0})
    schedulers.start(("changed", 2, "cleanup_agents"))
    until(lambda: not bench.redis.exists("rq:job:tick-gone"), "it lingers")
    assert bench.redis.zrange("rq:scheduler:scheduled_jobs", 0, -1)[0] == b"somebody-elses"
    bench.plain_writer()
    schedulers.wait_for_more("changed", 3)
    assert not schedulers.slots("gone")
    assert b"tick-gone" not in bench.redis.zrange("rq:scheduler:scheduled_jobs", 0, -1)
    schedulers.assert_regular("changed", 2)
    figures = accounts(bench.redis)
    assert figures["discarded"] == 2  # both ticks had waited
    bench.writers[1].end()
    bench.settle()
    figures = accounts(bench.redis)
    assert figures["accepted"] == figures["done"] + figures["discarded"]


def test_the_newest_failed_job_of_a_periodic_row_is_kept(bench: Bench) -> None:
    for number in (1, 2, 3):
        bench.redis.hset(f"rq:job:quick-{number}", mapping={"status": "failed", "hp": 1})
        bench.redis.zadd("rq:failed:medium", {f"quick-{number}": -1})
    bench.redis.hset("rq:job:" + "0" * 32, mapping={"status": "failed", "hp": 1})
    bench.redis.zadd("rq:failed:medium", {"0" * 32: -1})
    assert ticks.drop_superseded(bench.redis) == 2
    assert set(bench.redis.zrange("rq:failed:medium", 0, -1)) == {b"quick-3", b"0" * 32}
    assert accounts(bench.redis)["discarded"] == 2
    assert ticks.drop_superseded(bench.redis) == 0
