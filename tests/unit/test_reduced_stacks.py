"""What the scheduler does in place of missing workers, and how `status` reports a reduced stack.

Redis is fakeredis. Workers register themselves with the code of RQ and hivepipe.
"""

import math
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fakeredis
import pytest
from rq import Queue, Worker

from hivepipe.doctor import stack as checks
from hivepipe.doctor.checks import CHECKS
from hivepipe.doctor.facts import Facts
from hivepipe.home import Place
from hivepipe.jobs.schedule_table import tick_id
from hivepipe.monitor import status as status_module
from hivepipe.operations.declared import PERIODIC
from hivepipe.queue import ticks
from hivepipe.queue.claims import accounts
from hivepipe.queue.figures import figures
from hivepipe.queue.names import ALL_QUEUES, QUEUES
from hivepipe.queue.rq_workers import missing_queues, rq_workers
from hivepipe.queue.spool import NOTES
from hivepipe.stack.runtime_folder import Stack
from hivepipe.worker.scheduler import TickScheduler
from hivepipe.worker.slow_worker import LlmWorker, SlowWorker
from hivepipe.worker.writer import Writer

FALLBACKS = {row.name for row in PERIODIC if row.fallback_for}
ALWAYS = {row.name for row in PERIODIC if not row.fallback_for}
CONDITIONAL = {"retries", "spool", "activity"}


@pytest.fixture
def redis() -> fakeredis.FakeRedis:
    return fakeredis.FakeRedis()


def register_stock_worker(redis: fakeredis.FakeRedis, *queues: str) -> Worker:
    worker = Worker([Queue(name, connection=redis) for name in queues or QUEUES], connection=redis)
    worker.register_birth()
    return worker


def register_own_workers(redis: fakeredis.FakeRedis, *kinds: type[Writer | SlowWorker]) -> None:
    for kind in kinds:
        queues = [Queue(name, connection=redis) for name in kind.own_queues]
        kind(queues, connection=redis).register_birth()


def fired(redis: fakeredis.FakeRedis, home: Path) -> set[str]:
    """Return the rows that the scheduler enqueues after workers have had the time to start."""
    scheduler = TickScheduler(redis, home=str(home))
    scheduler._seen_at = dict.fromkeys(scheduler._seen_at, -math.inf)
    scheduler._cycle()
    scheduler.remove_lock()
    waiting = redis.lrange("rq:queue:medium", 0, -1)
    redis.delete("rq:queue:medium")
    return {id.decode().removeprefix("tick-") for id in waiting}


@pytest.mark.parametrize(
    ("kinds", "has_stock", "rows"),
    [
        ((Writer, SlowWorker, LlmWorker), True, ALWAYS),
        ((), True, ALWAYS | FALLBACKS - CONDITIONAL),
        ((Writer,), False, ALWAYS | {"exports"}),
    ],
    ids=["own workers", "stock workers alone", "no slow worker"],
)
def test_the_scheduler_replaces_missing_workers(
    redis: fakeredis.FakeRedis,
    tmp_path: Path,
    kinds: tuple[type[Writer | SlowWorker], ...],
    has_stock: bool,
    rows: set[str],
) -> None:
    register_own_workers(redis, *kinds)
    if has_stock:
        register_stock_worker(redis)
    assert fired(redis, tmp_path) == rows


def test_the_scheduler_waits_for_workers_that_start_with_it(redis: fakeredis.FakeRedis) -> None:
    TickScheduler(redis)._cycle()
    waiting = redis.lrange("rq:queue:medium", 0, -1)
    assert {id.decode().removeprefix("tick-") for id in waiting} == ALWAYS


def a_due_retry(redis: fakeredis.FakeRedis, _home: Path) -> None:
    redis.zadd("rq:scheduled:low", {"0" * 32: 1})


def an_event_on_disk(_redis: fakeredis.FakeRedis, home: Path) -> None:
    (home / "spool").mkdir()
    (home / "spool" / "1_1.json").write_text("{}")


def a_note_on_disk(_redis: fakeredis.FakeRedis, home: Path) -> None:
    (home / NOTES).write_text("[]\n")


def a_heartbeat(redis: fakeredis.FakeRedis, _home: Path) -> None:
    redis.sadd("hivepipe:active", "s-1")


@pytest.mark.parametrize(
    ("work", "row"),
    [
        (a_due_retry, "retries"),
        (an_event_on_disk, "spool"),
        (a_note_on_disk, "spool"),
        (a_heartbeat, "activity"),
    ],
)
def test_a_row_without_work_is_not_fired(
    redis: fakeredis.FakeRedis,
    tmp_path: Path,
    work: Callable[[fakeredis.FakeRedis, Path], None],
    row: str,
) -> None:
    register_stock_worker(redis)
    assert row not in fired(redis, tmp_path)
    work(redis, tmp_path)
    assert row in fired(redis, tmp_path)


def test_a_writer_without_a_heartbeat_is_replaced(
    redis: fakeredis.FakeRedis, tmp_path: Path
) -> None:
    register_own_workers(redis, Writer, SlowWorker)
    (key,) = [key for key in redis.smembers("rq:workers") if b"writer." in key]
    redis.hset(key, "last_heartbeat", "2026-01-01T00:00:00.000000Z")
    assert fired(redis, tmp_path) >= FALLBACKS - CONDITIONAL - {"exports"}


def test_a_tick_whose_job_is_lost_is_enqueued_again(redis: fakeredis.FakeRedis) -> None:
    scheduler = TickScheduler(redis)
    scheduler._cycle()
    redis.delete("rq:queue:medium", f"rq:job:{tick_id('cleanup')}")
    redis.zadd(ticks.SCHEDULED_KEY, {tick_id("cleanup"): 1})
    scheduler._cycle()
    scheduler._cycle()
    assert redis.lrange("rq:queue:medium", 0, -1) == [tick_id("cleanup").encode()]
    assert redis.hget(f"rq:job:{tick_id('cleanup')}", "timeout")


def test_a_tick_that_died_with_its_worker_is_tried_again_and_does_not_stay_failed(
    redis: fakeredis.FakeRedis,
) -> None:
    row = next(row for row in PERIODIC if row.name == "sweep")
    scheduler = TickScheduler(redis)
    scheduler._cycle()
    id = tick_id(row.name)
    assert redis.hmget(f"rq:job:{id}", "retries_left", "retry_intervals") == [b"3", b"[1, 2, 4]"]
    redis.delete("rq:queue:medium")
    redis.zadd("rq:failed:medium", {id: -1})
    redis.zadd(ticks.SCHEDULED_KEY, {id: 1})
    before = accounts(redis)
    scheduler._cycle()
    after = accounts(redis)
    assert (after["failed"], after["waiting"]) == (0, 1)
    assert after["accepted"] - before["accepted"] == 1
    assert after["discarded"] == 1


def test_own_workers_register_their_role_and_queues_before_a_job(
    redis: fakeredis.FakeRedis,
) -> None:
    register_own_workers(redis, Writer, SlowWorker, LlmWorker)
    found = {worker.role: worker for worker in rq_workers(redis)}
    assert set(found) == {"writer", "slow", "llm"}
    assert found["llm"].name == f"llm.{os.uname().nodename}.{os.getpid()}"
    assert redis.smembers("rq:queues") == {f"rq:queue:{name}".encode() for name in ALL_QUEUES}
    register_own_workers(redis, LlmWorker)  # after a kill -9, with the same pid
    assert len(rq_workers(redis)) == 3


def test_an_idle_stock_worker_counts_as_alive(redis: fakeredis.FakeRedis) -> None:
    worker = register_stock_worker(redis)
    at = datetime.now(UTC) - timedelta(seconds=300)
    redis.hset(worker.key, "last_heartbeat", at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    assert rq_workers(redis)[0].is_alive
    redis.hset(worker.key, "pid", 2**22 + 1)  # no process has it
    assert not rq_workers(redis)[0].is_alive


@pytest.mark.parametrize(
    ("has_stock", "kinds", "waiting", "missing"),
    [
        (True, (), {}, ()),
        (True, (), {"slow": 3}, ("slow",)),  # handed on by an earlier writer
        (True, (Writer,), {}, ("slow", "llm")),
        (False, (Writer, SlowWorker), {}, ("llm",)),
        (False, (Writer, SlowWorker, LlmWorker), {}, ()),
        (False, (), {}, ALL_QUEUES),
    ],
)
def test_slow_and_llm_need_a_worker_where_a_writer_hands_on(
    redis: fakeredis.FakeRedis,
    has_stock: bool,
    kinds: tuple[type[Writer | SlowWorker], ...],
    waiting: dict[str, int],
    missing: tuple[str, ...],
) -> None:
    if has_stock:
        register_stock_worker(redis)
    register_own_workers(redis, *kinds)
    assert missing_queues(rq_workers(redis), waiting) == missing


REDUCED: list[tuple[bool, tuple[type[Writer | SlowWorker], ...], bool, list[str]]] = [
    (True, (), True, ["stock_workers", "no_slow_worker", "no_llm_worker"]),
    (True, (), False, ["stock_workers", "no_scheduler", "no_slow_worker", "no_llm_worker"]),
    (True, (SlowWorker,), True, ["stock_workers", "no_llm_worker"]),
    (True, (Writer, SlowWorker, LlmWorker), True, []),
    (False, (Writer, SlowWorker, LlmWorker), False, ["no_scheduler"]),
    (False, (), False, []),  # nothing runs at all
]


@pytest.mark.parametrize(("has_stock", "kinds", "has_scheduler", "names"), REDUCED)
def test_a_reduced_stack_is_reported_in_sentences(
    redis: fakeredis.FakeRedis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_stock: bool,
    kinds: tuple[type[Writer | SlowWorker], ...],
    has_scheduler: bool,
    names: list[str],
) -> None:
    if has_stock:
        register_stock_worker(redis)
    register_own_workers(redis, *kinds)
    if has_scheduler:
        redis.set(ticks.LOCK_KEY, "somebody", ex=20)
    home = Stack(str(tmp_path), str(tmp_path))
    found = status_module._reductions(home, figures(redis))
    assert [reduction.name for reduction in found] == names
    assert all(reduction.text.endswith((".py", ")", "fails")) for reduction in found)
    monkeypatch.setattr(checks.connection, "connect", lambda _address, **_limit: redis)
    monkeypatch.setattr(Facts, "is_alive", True)
    monkeypatch.setattr(Facts, "programs", [])
    findings = list(CHECKS["reduced"](Facts(Place(str(tmp_path), str(tmp_path), {}), home)))
    assert [finding.text for finding in findings] == [reduction.text for reduction in found]
    assert any(not finding.is_note for finding in findings) is ("no_scheduler" in names)
