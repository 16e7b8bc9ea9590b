"""The scheduler and the stored slots when Redis is lost or the clock is set.

Redis is fakeredis in this process. The database is real.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import fakeredis
import pytest
from redis import Redis

from hivepipe.db.location import database_path
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import Envelope, envelope_of, follow_ups, read_envelope
from hivepipe.jobs.schedule_table import TICK, Periodic, tick_of
from hivepipe.operations import slots as slot_operations
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.registry import apply_results
from hivepipe.queue import ticks
from hivepipe.queue.connection import PERIODIC_KEY, connect
from hivepipe.queue.enqueue import enqueue_over
from hivepipe.queue.job_data import envelope_text
from hivepipe.times import stored_time
from hivepipe.worker import scheduler as scheduler_module
from hivepipe.worker.scheduler import TickScheduler
from tests.rounds import SEED, rounds
from tests.store_scene import new_database

NOON = 1_795_219_200.0
ROWS = (
    Periodic("reaper", 60, "reap_sessions", "a test"),
    Periodic("cleanup", 600, "cleanup_agents", "a test"),
)

SLACK_SECS = 15.0  # the scheduler sleeps for 5 s, the worker of the test for at most 5 s more
LOSSES = 15


class Clock:
    """Replaces the module `time`."""

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


class Scenario:
    """A home with a scheduler, a slow worker, and a Redis that can be lost."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self.clock = clock
        self.store = new_database(database_path(str(home)))
        self.context = JobContext(str(home), "", self._follow_up)
        self.runs: list[tuple[str, str, float]] = []  # row, job, seconds since boot
        self.redis = fakeredis.FakeRedis()
        self.scheduler = TickScheduler(self.redis, ROWS)

    def use(self, redis: Redis) -> None:
        """Start a scheduler on this Redis, like a process that is started with another address."""
        self.scheduler.remove_lock()
        self.redis = redis
        self.scheduler = TickScheduler(redis, ROWS)

    def cycle(self) -> None:
        """Run one cycle of the scheduler and let the time of its sleep pass."""
        self.clock.pass_by(self.scheduler._cycle())

    def run(self, cycles: int) -> None:
        """Run so many cycles, with a worker that keeps up."""
        for _ in range(cycles):
            self.cycle()
            self.work(3)

    def work(self, jobs: int) -> None:
        """Execute so many jobs of each queue, ticks included."""
        for _ in range(jobs):
            found = [self.redis.lpop(f"rq:queue:{name}") for name in ("high", "medium", "low")]
            for id in filter(None, found):
                data = self.redis.hget(b"rq:job:" + id, "data")
                self._execute(read_envelope(envelope_text(data)))

    def _execute(self, job: Envelope) -> None:
        if job.operation == TICK:
            due = slot_operations.job_due(self.store, job)
            enqueue_over(self.redis, [due] if due else [], PERIODIC_KEY)
            return
        with slot_operations.turn(self.context, job) as is_due:
            if is_due:
                self.runs.append((job.periodic, job.id, self.clock.since_boot))

    def _follow_up(self, parent: Envelope, jobs: list[Job]) -> None:
        apply_results(self.store, follow_ups(parent, jobs))

    # ---- what was executed

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
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scenario]:
    clock = Clock()
    monkeypatch.setattr("hivepipe.worker.scheduler.time", clock)
    monkeypatch.setattr("hivepipe.operations.slots.time", clock)
    monkeypatch.setattr("hivepipe.operations.slots.runtime_for", lambda _home: str(tmp_path))
    made = Scenario(tmp_path, clock)
    yield made
    made.store.close()


def lose_redis(scenario: Scenario, rng: random.Random) -> None:
    """Empty Redis or switch to another one, so that waiting jobs are lost."""
    if rng.random() < 0.5:
        scenario.redis.flushall()
    else:
        scenario.use(fakeredis.FakeRedis())


@pytest.mark.parametrize("seed", range(rounds(1)))
def test_repeated_losses_of_redis_neither_skip_nor_repeat_a_slot(
    scenario: Scenario, seed: int
) -> None:
    rng = random.Random(SEED + seed)
    for _ in range(LOSSES):
        for _ in range(rng.randrange(2, 30)):
            scenario.cycle()
            if rng.random() < 0.7:
                scenario.work(rng.randrange(4))
            if rng.random() < 0.1:
                ticks.trigger(scenario.redis, "cleanup", "session_end")
        lose_redis(scenario, rng)
    scenario.cycle()
    scenario.work(10)
    assert len(scenario.triggered()) > 10
    scenario.assert_nothing_ran_twice()
    for row in ROWS:
        found = scenario.slots(row.name)
        first = int(NOON // row.interval_secs)
        last = int(scenario.clock.wall // row.interval_secs)
        assert found == [*range(first, last + 1)]
        gaps = [after - before for before, after in pairwise(scenario.periodic_runs(row.name))]
        assert max(gaps) <= 2 * row.interval_secs


def test_a_redis_with_old_ticks_neither_skips_nor_repeats_a_slot(scenario: Scenario) -> None:
    first = scenario.redis
    scenario.run(30)
    scenario.use(fakeredis.FakeRedis())
    scenario.run(120)
    scenario.use(first)  # its ticks are old now
    scenario.run(120)
    scenario.assert_nothing_ran_twice()
    for row in ROWS:
        found = scenario.slots(row.name)
        assert found == [*range(found[0], int(scenario.clock.wall // row.interval_secs) + 1)]


@pytest.mark.parametrize("hours", [1 / 90, 48])
def test_a_clock_that_is_set_back_skips_no_run_and_uses_no_future_slot(
    scenario: Scenario, hours: float
) -> None:
    scenario.run(120)
    scenario.clock.wall -= hours * 3600
    scenario.run(120)
    scenario.assert_nothing_ran_twice()
    times = [at for row, _, at in scenario.runs if row == "reaper"]
    assert max(after - before for before, after in pairwise(times)) <= 2 * 60 + SLACK_SECS
    assert len(times) > 15
    latest = max(scenario.clock.wall, scenario.clock.wall + hours * 3600)
    assert max(scenario.slots("reaper")) <= latest // 60


def test_a_clock_that_was_far_ahead_for_a_moment_costs_one_run(scenario: Scenario) -> None:
    for wall in (0, 7 * 86_400, -7 * 86_400):
        scenario.clock.wall += wall
        scenario.run(60)
    scenario.assert_nothing_ran_twice()
    assert not scenario.triggered()
    found = scenario.slots("reaper")
    assert int(scenario.clock.wall // 60) - 1 in found


def test_future_slots_of_an_earlier_release_do_not_stop_runs(scenario: Scenario) -> None:
    ahead = int(NOON // 60) + 1000
    for slot in range(int(NOON // 60), ahead):
        scenario.store.execute(
            "INSERT INTO slots (name, slot, executed_at) VALUES ('reaper', :slot, :at)",
            {"slot": slot, "at": stored_time(int(NOON * 1e9))},
        )
    scenario.run(60)
    assert len(scenario.triggered()) >= 4


def test_a_slot_that_is_being_executed_is_not_executed_again(scenario: Scenario) -> None:
    scenario.cycle()
    tick = read_envelope(envelope_text(scenario.redis.hget("rq:job:tick-reaper", "data")))
    job = read_envelope(slot_operations.job_of(tick).envelope)
    with (
        slot_operations.turn(scenario.context, job) as first,
        slot_operations.turn(scenario.context, job) as second,
    ):
        assert (first, second) == (True, False)
    with slot_operations.turn(scenario.context, job) as third:
        assert not third
    assert len(scenario.slots("reaper")) == 1


@pytest.mark.parametrize("name", ["../../../home/ann/x", "a\0b", 7, ["alerts"]])
def test_a_job_cannot_name_a_lock_outside_the_runtime_folder(name: object) -> None:
    row = Periodic("alerts", 60, "raise_alerts", "")
    message = slot_operations.job_of(read_envelope(tick_of(row, 5, 10**18).envelope))
    fields = json.loads(message.envelope)
    fields["payload"]["periodic"] = name
    assert envelope_of(fields).periodic == ""
    assert read_envelope(message.envelope).periodic == "alerts"


@pytest.mark.parametrize(("patience_secs", "warnings"), [(60.0, 0), (0.0, 1)])
def test_a_redis_that_is_starting_is_no_warning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    patience_secs: float,
    warnings: int,
) -> None:
    """The scheduler starts at the same time as Redis."""
    monkeypatch.setattr(scheduler_module, "REDIS_STARTS_SECS", patience_secs)
    monkeypatch.setattr(scheduler_module, "STOP_SIGNALS", ())
    TickScheduler(connect(str(tmp_path / "redis.sock")), ROWS).run(burst=True)
    assert caplog.text.count("Redis is away") == warnings
