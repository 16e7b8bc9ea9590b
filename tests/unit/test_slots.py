"""The clock against a Redis that is lost: scheduler and store as they are, time and Redis made.

Redis is fakeredis, in this process; the store is real.
"""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import fakeredis
import pytest
from redis import Redis

from hivepipe.db.database import Database
from hivepipe.db.location import database_path
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import Envelope, follow_ups, read_envelope
from hivepipe.jobs.schedule_table import TICK, Periodic
from hivepipe.operations import slots as product
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.registry import apply_results
from hivepipe.queue import ticks
from hivepipe.queue.connection import PERIODIC_KEY, enqueue
from hivepipe.queue.job_data import envelope_text
from hivepipe.times import stored_time
from hivepipe.worker.scheduler import TickScheduler
from tests.rounds import SEED, rounds

NOON = 1_795_219_200.0
ROWS = (
    Periodic("reaper", 60, "reap_sessions", "a test"),
    Periodic("cleanup", 600, "cleanup_agents", "a test"),
)
SLACK_SECS = 15.0  # the scheduler sleeps for five, the worker of the test for at most five more
LOSSES = 25


class Clock:
    """In the place of the module `time`."""

    def __init__(self) -> None:
        self.wall, self.since_boot = NOON, 1000.0

    def time(self) -> float:
        return self.wall

    def time_ns(self) -> int:
        return int(self.wall * 1e9)

    def monotonic(self) -> float:
        return self.since_boot

    def pass_by(self, secs: float) -> None:
        self.wall += secs
        self.since_boot += secs


class World:
    """A home with a scheduler, a worker that takes its time, and a Redis that can be lost."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self.clock = clock
        self.store = Database(database_path(str(home)))
        self.context = JobContext(str(home), "", self._follow_up)
        self.runs: list[tuple[str, str, float]] = []  # row, job, seconds since boot
        self.redis = fakeredis.FakeRedis()
        self.scheduler = TickScheduler(self.redis, ROWS)

    def use(self, redis: Redis) -> None:
        """Begin with this Redis, as processes do that are started with another address."""
        self.scheduler.remove_lock()
        self.redis = redis
        self.scheduler = TickScheduler(redis, ROWS)

    def cycle(self) -> None:
        """One cycle of the scheduler, and its sleep."""
        self.clock.pass_by(self.scheduler._cycle())

    def work(self, jobs: int) -> None:
        """Take as many jobs, ticks among them, and execute them."""
        for _ in range(jobs):
            found = [self.redis.lpop(f"rq:queue:{name}") for name in ("high", "medium", "low")]
            for id in filter(None, found):
                data = self.redis.hget(b"rq:job:" + id, "data")
                self._execute(read_envelope(envelope_text(data)))

    def _execute(self, job: Envelope) -> None:
        if job.operation == TICK:
            due = product.job_due(self.store, job)
            enqueue(self.redis, [due] if due else [], PERIODIC_KEY)
            return
        with product.turn(self.context, job) as is_due:
            if is_due:
                self.runs.append((job.periodic, job.id, self.clock.since_boot))

    def _follow_up(self, parent: Envelope, jobs: list[Job]) -> None:
        apply_results(self.store, follow_ups(parent, jobs))

    # ---- looking

    def slots(self, name: str) -> list[int]:
        sql = "SELECT slot, executions FROM slots WHERE name = :name ORDER BY slot"
        found = self.store.rows(sql, {"name": name})
        assert {row["executions"] for row in found} == {1}
        return [row["slot"] for row in found]

    def periodic_runs(self, name: str) -> list[float]:
        return [at for row, id, at in self.runs if row == name and id not in self.triggered()]

    def triggered(self) -> set[str]:
        return {id for _, id, _ in self.runs if "-at-" in id}

    def assert_nothing_ran_twice(self) -> None:
        assert max(Counter(id for _, id, _ in self.runs).values()) == 1


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    clock = Clock()
    monkeypatch.setattr("hivepipe.worker.scheduler.time", clock)
    monkeypatch.setattr("hivepipe.operations.slots.time", clock)
    monkeypatch.setattr("hivepipe.operations.slots.runtime_for", lambda _home: str(tmp_path))
    made = World(tmp_path, clock)
    yield made
    made.store.close()


def lose_redis(world: World, rng: random.Random) -> None:
    """Empty it while all run, or go over to another one; what waits there comes too late."""
    if rng.random() < 0.5:
        world.redis.flushall()
    else:
        world.use(fakeredis.FakeRedis())


@pytest.mark.parametrize("seed", range(rounds(2)))
def test_redis_lost_again_and_again_no_slot_is_skipped_and_none_executed_twice(
    world: World, seed: int
) -> None:
    rng = random.Random(SEED + seed)
    for _ in range(LOSSES):
        for _ in range(rng.randrange(2, 30)):
            world.cycle()
            if rng.random() < 0.7:
                world.work(rng.randrange(4))
            if rng.random() < 0.1:
                ticks.trigger(world.redis, "cleanup", "session_end")
        lose_redis(world, rng)
    world.cycle()
    world.work(10)
    assert len(world.triggered()) > 10
    world.assert_nothing_ran_twice()
    for row in ROWS:
        found = world.slots(row.name)
        first = int(NOON // row.interval_secs)
        last = int(world.clock.wall // row.interval_secs)
        assert found == [*range(first, last + 1)]
        gaps = [after - before for before, after in pairwise(world.periodic_runs(row.name))]
        assert max(gaps) <= 2 * row.interval_secs


def test_another_redis_whose_ticks_are_old_is_taken_over(world: World) -> None:
    first = world.redis
    for _ in range(30):
        world.cycle()
        world.work(3)
    world.use(fakeredis.FakeRedis())
    for _ in range(120):
        world.cycle()
        world.work(3)
    world.use(first)  # where it is still as it was
    for _ in range(120):
        world.cycle()
        world.work(3)
    world.assert_nothing_ran_twice()
    for row in ROWS:
        found = world.slots(row.name)
        assert found == [*range(found[0], int(world.clock.wall // row.interval_secs) + 1)]


@pytest.mark.parametrize("hours", [1 / 90, 0.5, 48])
def test_a_clock_that_is_set_back_skips_nothing_and_gets_no_slot_ahead(
    world: World, hours: float
) -> None:
    for _ in range(120):
        world.cycle()
        world.work(3)
    world.clock.wall -= hours * 3600
    for _ in range(120):
        world.cycle()
        world.work(3)
    world.assert_nothing_ran_twice()
    times = [at for row, _, at in world.runs if row == "reaper"]
    assert max(after - before for before, after in pairwise(times)) <= 2 * 60 + SLACK_SECS
    assert len(times) > 15
    latest = max(world.clock.wall, world.clock.wall + hours * 3600)
    assert max(world.slots("reaper")) <= latest // 60


def test_a_clock_that_was_far_ahead_for_a_moment_costs_one_run(world: World) -> None:
    for wall in (0, 7 * 86_400, -7 * 86_400):
        world.clock.wall += wall
        for _ in range(60):
            world.cycle()
            world.work(3)
    world.assert_nothing_ran_twice()
    assert not world.triggered()
    found = world.slots("reaper")
    assert int(world.clock.wall // 60) - 1 in found


def test_slots_that_a_release_before_has_put_ahead_of_the_clock_stop_nothing(world: World) -> None:
    ahead = int(NOON // 60) + 1000
    for slot in range(int(NOON // 60), ahead):
        world.store.execute(
            "INSERT INTO slots (name, slot, executed_at) VALUES ('reaper', :slot, :at)",
            {"slot": slot, "at": stored_time(int(NOON * 1e9))},
        )
    for _ in range(60):
        world.cycle()
        world.work(3)
    assert len(world.triggered()) >= 4


def test_a_slot_that_is_being_executed_is_left_to_who_does(world: World) -> None:
    world.cycle()
    tick = read_envelope(envelope_text(world.redis.hget("rq:job:tick-reaper", "data")))
    job = read_envelope(product.job_of(tick).envelope)
    with product.turn(world.context, job) as first, product.turn(world.context, job) as second:
        assert (first, second) == (True, False)
    with product.turn(world.context, job) as third:
        assert not third
    assert len(world.slots("reaper")) == 1
