"""The keys that the claim scripts leave in Redis: correct counters, and no key forever."""

import base64
import time
import zlib

import pytest
import redis

from hivepipe.events.job_plan import Message
from hivepipe.hook.hand_over import IN_TIME_SCRIPT
from hivepipe.queue import client
from hivepipe.queue.claims import Claims, accounts
from hivepipe.queue.failed_jobs import failed_jobs
from hivepipe.queue.names import QUEUES
from hivepipe.queue.stock_jobs import has_due_retries, promote_due
from tests.conftest import Server

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.fixture
def connection(redis_server: Server) -> redis.Redis:
    return redis_server.client()


@pytest.fixture
def claims(connection: redis.Redis) -> Claims:
    return Claims(connection, QUEUES, "w", "rq:worker:w")


def push(server: Server, number: int) -> None:
    at = "2026-11-21T01:00:00.000000Z"
    client.push(server.address, [Message(f"{number:032x}", "", "high", "a job", at, "{}")])


def fail_job(claims: Claims, reason: str = "no use") -> None:
    (job,) = claims.claim(1).jobs
    claims.fail([(job, reason, job.data, "an operation")])


def test_a_hook_learns_that_it_was_too_late(redis_server: Server) -> None:
    script = f"{IN_TIME_SCRIPT}if in_time then reply = 'in time' end\n"
    assert client.push_with(redis_server.address, [], script, ["", ""]) == "in time"
    with pytest.raises(client.RefusedError, match="too late"):
        client.push_with(redis_server.address, [], script, ["1", ""])


def test_expired_finished_jobs_are_removed(
    redis_server: Server, connection: redis.Redis, claims: Claims
) -> None:
    """RQ itself removes expired entries only on request."""
    for number in range(3):
        push(redis_server, number)
        (job,) = claims.claim(1).jobs
        claims.acknowledge([(job, "an operation")])
        assert connection.zcard("rq:finished:high") == 1
        for member in connection.zrange("rq:finished:high", 0, -1):
            connection.zadd("rq:finished:high", {member: 1})  # as if a minute had passed


def test_a_foreign_job_is_counted_once(
    connection: redis.Redis, claims: Claims, redis_server: Server
) -> None:
    """It counts once however often it is claimed: after its worker died, or after a retry."""
    connection.hset("rq:job:theirs", mapping={"status": "queued", "data": b"x"})
    connection.rpush("rq:queue:high", "theirs")
    claims.claim(1)
    assert claims.recover("") == 1
    fail_job(claims)
    assert (accounts(connection)["accepted"], accounts(connection)["failed"]) == (1, 1)
    with failed_jobs(redis_server.address) as failed:
        assert failed.retry(failed.jobs()) == 1
    fail_job(claims)
    assert (accounts(connection)["accepted"], accounts(connection)["failed"]) == (1, 1)


def test_a_foreign_job_is_reported_once_with_several_queues(connection: redis.Redis) -> None:
    """A large claim reads the first queue twice: before the other queues get a share, and after."""
    for queue in ("high", "medium"):
        connection.hset(f"rq:job:{queue}", mapping={"status": "queued", "data": b"x"})
        connection.rpush(f"rq:queue:{queue}", queue)
    shared = Claims(connection, QUEUES, "w", "rq:worker:w", is_shared=True)
    assert shared.claim(100).foreign == 2
    assert connection.lrange("rq:queue:high", 0, -1) == [b"high"]


def test_a_reason_is_redacted_and_deleted_with_its_job(
    redis_server: Server, connection: redis.Redis, claims: Claims
) -> None:
    push(redis_server, 1)
    fail_job(claims, f"ValueError: not a number: {SECRET}")
    (results,) = connection.keys("rq:results:*")
    ((_, entry),) = connection.xrange(results)
    output = zlib.decompress(base64.b64decode(entry[b"exc_string"])).decode()
    assert output == "ValueError: not a number: ***REDACTED***"
    with failed_jobs(redis_server.address) as failed:
        assert failed.retry(failed.jobs()) == 1
    (job,) = claims.claim(1).jobs
    claims.acknowledge([(job, "an operation")])
    assert connection.keys("rq:results:*") == []


def test_failed_jobs_are_retried_and_discarded_some_at_a_time(
    redis_server: Server, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.queue.failed_jobs.AT_A_TIME", 2)
    for number in range(5):
        push(redis_server, number)
    with failed_jobs(redis_server.address) as failed:
        for change in (failed.retry, failed.discard):
            for _ in range(5):
                fail_job(claims)
            assert change(failed.jobs()) == 5
            assert failed.jobs() == []


def test_retries_far_in_the_future_are_due_after_recovery(
    redis_server: Server, connection: redis.Redis, claims: Claims
) -> None:
    push(redis_server, 1)
    (job,) = claims.claim(1).jobs
    claims.retry([(job, "high", 30.0)])
    ((member, due),) = connection.zrange("rq:scheduled:high", 0, -1, withscores=True)
    assert claims.recover("") == 0
    assert claims.claim(1).jobs == [], "the retry is due already"
    connection.zadd("rq:scheduled:high", {member: due + 3 * 3600})
    claims.recover("")
    assert [job.id for job in claims.claim(1).jobs] == [member.decode()]


DAYS_SECS = 2 * 86_400


def set_clock_back(connection: redis.Redis, secs: float) -> None:
    """Change times in Redis as if the clock had been ahead by this many seconds before."""
    for key in connection.scan_iter("rq:scheduled:*"):
        for member, due in connection.zrange(key, 0, -1, withscores=True):
            connection.zadd(key, {member: due + secs})
    for queue in connection.hkeys("hivepipe:clock"):
        connection.hincrbyfloat("hivepipe:clock", queue, secs)


@pytest.mark.parametrize("secs", [45, 3600, DAYS_SECS])
def test_a_clock_that_is_set_back_delays_nothing(
    redis_server: Server, connection: redis.Redis, claims: Claims, secs: int
) -> None:
    push(redis_server, 1)
    (job,) = claims.claim(1).jobs
    claims.retry([(job, "high", 20.0)])
    set_clock_back(connection, secs)
    claimed = claims.claim(1)
    assert secs - 6 <= claimed.set_back_secs <= secs
    assert claimed.next_due_secs is not None
    assert claimed.next_due_secs <= 26
    assert claims.claim(1).set_back_secs == 0


def test_held_up_jobs_are_claimed_at_once_and_in_order(
    redis_server: Server, claims: Claims
) -> None:
    for number in range(5):
        push(redis_server, number)
    jobs = claims.claim(5).jobs
    claims.retry([(job, "low", 30.0) for job in jobs[:3]], held_up=True)
    claims.retry([(job, "low", 30.0) for job in jobs[3:]])
    assert claims.claim(5).jobs == []
    assert claims.retry_now() == 3
    assert [job.id for job in claims.claim(5).jobs] == [job.id for job in jobs[:3]]
    assert claims.retry_now() == 0


@pytest.mark.parametrize("secs", [3600, DAYS_SECS])
def test_stock_workers_get_retries_delayed_by_a_clock(
    redis_server: Server, connection: redis.Redis, claims: Claims, secs: int
) -> None:
    """Retries of hivepipe become due; another program's job keeps its time."""
    push(redis_server, 1)
    claims.retry([(job, "high", 4.0) for job in claims.claim(1).jobs])
    set_clock_back(connection, secs)
    connection.hset("rq:job:theirs", "status", "scheduled")
    connection.zadd("rq:scheduled:high", {"theirs": time.time() + secs})
    assert has_due_retries(connection, time.time())
    assert promote_due(connection) == 1
    assert connection.zrange("rq:scheduled:high", 0, -1) == [b"theirs"]
