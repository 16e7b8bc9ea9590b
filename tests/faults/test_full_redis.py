"""Redis' memory is full: it refuses new jobs, and the jobs that it has are done."""

import time

from hivepipe.events.job_plan import Job, Message
from hivepipe.jobs.envelope import compose
from hivepipe.jobs.schedule_table import extra_job, slot_at, tick_of
from hivepipe.operations.declared import PERIODIC
from hivepipe.queue import client as wire
from hivepipe.queue.connection import PERIODIC_KEY
from hivepipe.queue.names import QUEUES
from hivepipe.queue.spool import write_spool
from tests.conftest import until
from tests.faults import oracle
from tests.faults.harness import SEED, Bench

EVENTS = oracle.mix(SEED, 40).all


def test_a_full_redis_finishes_the_jobs_that_it_has(bench: Bench) -> None:
    """Only finished jobs free memory. Then spool files and scheduled jobs follow."""
    *sent, last = oracle.messages(EVENTS, bench.project, bench.swarm)
    row, now = next(row for row in PERIODIC if row.name == "alerts"), time.time()
    tick = tick_of(row, slot_at(now, row.interval_secs), int(now * 1e9))
    wire.push(bench.server.address, [tick], 5.0, PERIODIC_KEY)
    for messages in sent:
        bench.send(messages)
    write_spool(f"{bench.home.path}/spool", EVENTS[-1].time_ns, last)
    bench.redis.sadd("hivepipe:active", "a-session")  # a heartbeat of its hooks
    bench.redis.config_set("maxmemory", 1)
    writer = bench.plain_writer()
    until(lambda: bench.to_be_done() == 1, "not worked off")
    assert len(bench.home.spool) == 1

    bench.redis.config_set("maxmemory", 0)
    bench.settle(writer)
    bench.assert_tables(EVENTS)
    until(lambda: bench.redis.scard("rq:workers") == 1, "it never registers")
    assert writer.end() == 0


def test_a_full_redis_holds_up_a_short_job_until_its_work_is_enqueued(bench: Bench) -> None:
    end = Job("conclude_session", {"path": "/home/ana/.claude/projects/x/s.jsonl"}, "s")
    bench.send([compose("end", end, time.time_ns())])
    bench.redis.config_set("maxmemory", 1)
    writer = bench.plain_writer()
    until(lambda: bench.accounts["retrying"] == 1, "it is not tried again")
    assert sum(bench.handed_on().values()) == 0
    bench.redis.config_set("maxmemory", 0)
    until(lambda: sum(bench.handed_on().values()) == 2, "its work is not enqueued")
    until(lambda: bench.accounts["done"] == 1, "it is not acknowledged")
    assert bench.accounts["failed"] == 0
    assert writer.end() == 0


def test_a_full_redis_and_a_full_disk_end_no_writer(bench: Bench) -> None:
    """A job whose follow-up jobs cannot be kept stays claimed, and the next writer executes it."""
    sent = oracle.messages(EVENTS, bench.project, bench.swarm)
    count = sum(job.envelope.count('"start_session"') for messages in sent for job in messages)
    for messages in sent:
        bench.send(messages)
    bench.redis.config_set("maxmemory", 1)
    writer = bench.writer(operations=["own"])
    writer.wait_for_point("refused")
    until(lambda: bench.to_be_done() == claimed(bench) > 0, "the others are not acknowledged")
    assert writer.end() == 0

    writer.resume()
    after = bench.writer(operations=["own"])
    until(lambda: not claimed(bench) and bench.home.spool, "not spooled")
    bench.redis.config_set("maxmemory", 0)
    until(lambda: not bench.home.spool and not claimed(bench), "not enqueued")
    assert bench.redis.llen("rq:queue:slow") >= count > 0
    bench.assert_tables(EVENTS)
    assert after.end() == 0


def claimed(bench: Bench) -> int:
    return sum(bench.redis.zcard(f"rq:wip:{queue}") for queue in QUEUES)


def test_a_full_redis_checks_alerts_once_and_sends_them_later(bench: Bench) -> None:
    config = bench.home.root / ".config" / "hivepipe" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('alert_command = "true"\n')
    bench.redis.hset("hivepipe:alerts", mapping={"": 0, "uplink": 1})
    bench.redis.hset("rq:job:" + "0" * 32, mapping={"status": "failed", "hp": 1})
    bench.redis.zadd("rq:failed:medium", {"0" * 32: -1})
    now = time.time() - 10
    wire.push(bench.server.address, [check_at(now)], 5.0, PERIODIC_KEY)
    bench.redis.config_set("maxmemory", 1)
    writer = bench.plain_writer()
    until(lambda: bench.home.spool, "the messages are not spooled")
    until(lambda: not bench.to_be_done(), "the check is not acknowledged")
    assert bench.accounts["retrying"] == 0
    assert bench.redis.hget("hivepipe:alerts", "uplink") == b"2"
    rows = bench.home.rows("SELECT name, ended_at FROM alerts")
    assert {row["name"]: row["ended_at"] for row in rows} == {
        "redis_memory": None,
        "failed_jobs": None,
    }

    bench.redis.config_set("maxmemory", 0)
    until(lambda: bench.redis.llen("rq:queue:slow") == 2, "a message is not enqueued")
    bench.redis.zrem("rq:failed:medium", "0" * 32)
    wire.push(bench.server.address, [check_at(now + n) for n in (1, 2, 3)], 5.0, PERIODIC_KEY)
    bench.redis.config_set("maxmemory", 1)
    until(lambda: bench.home.rows("SELECT 1 FROM alerts WHERE ended_at > raised_at"), "not over")
    assert writer.end() == 0


def check_at(secs: float) -> Message:
    return extra_job("alerts", "raise_alerts", "test", int(secs * 1e9))
