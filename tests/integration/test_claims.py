"""What the scripts of claiming leave behind in Redis: true accounts, and nothing for ever."""

import base64
import time
import zlib

import pytest
import redis

from hivepipe.events.job_plan import Message
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


def bury(claims: Claims, reason: str = "no use") -> None:
    (job,) = claims.claim(1).jobs
    claims.bury([(job, reason, job.data, "an operation")])


def test_what_is_done_leaves_the_list_of_what_is_done(
    redis_server: Server, connection: redis.Redis, claims: Claims
) -> None:
    """RQ itself tidies it up only when somebody asks for it."""
    for number in range(3):
        push(redis_server, number)
        (job,) = claims.claim(1).jobs
        claims.acknowledge([(job, "an operation")])
        assert connection.zcard("rq:finished:high") == 1
        for member in connection.zrange("rq:finished:high", 0, -1):
            connection.zadd("rq:finished:high", {member: 1})  # a minute later


def test_a_foreign_job_comes_into_the_accounts_once(
    connection: redis.Redis, claims: Claims, redis_server: Server
) -> None:
    """However often it is claimed: its worker died, or somebody sent the failed job back."""
    connection.hset("rq:job:theirs", mapping={"status": "queued", "data": b"x"})
    connection.rpush("rq:queue:high", "theirs")
    claims.claim(1)
    assert claims.recover("") == 1
    bury(claims)
    assert (accounts(connection)["accepted"], accounts(connection)["failed"]) == (1, 1)
    with failed_jobs(redis_server.address) as failed:
        assert failed.retry(failed.jobs()) == 1
    bury(claims)
    assert (accounts(connection)["accepted"], accounts(connection)["failed"]) == (1, 1)


def test_a_foreign_job_is_reported_once_whichever_queues_wait(connection: redis.Redis) -> None:
    """A large claim looks at the first queue twice: before the others get a share, and after."""
    for queue in ("high", "medium"):
        connection.hset(f"rq:job:{queue}", mapping={"status": "queued", "data": b"x"})
        connection.rpush(f"rq:queue:{queue}", queue)
    shared = Claims(connection, QUEUES, "w", "rq:worker:w", is_shared=True)
    assert shared.claim(100).foreign == 2
    assert connection.lrange("rq:queue:high", 0, -1) == [b"high"]


def test_a_reason_is_redacted_and_goes_with_its_job(
    redis_server: Server, connection: redis.Redis, claims: Claims
) -> None:
    push(redis_server, 1)
    bury(claims, f"ValueError: not a number: {SECRET}")
    (results,) = connection.keys("rq:results:*")
    ((_, entry),) = connection.xrange(results)
    output = zlib.decompress(base64.b64decode(entry[b"exc_string"])).decode()
    assert output == "ValueError: not a number: ***REDACTED***"
    with failed_jobs(redis_server.address) as failed:
        assert failed.retry(failed.jobs()) == 1
    (job,) = claims.claim(1).jobs
    claims.acknowledge([(job, "an operation")])
    assert connection.keys("rq:results:*") == []


def test_jobs_delayed_by_a_clock_that_was_set_back_are_due(
    redis_server: Server, connection: redis.Redis, claims: Claims
) -> None:
    push(redis_server, 1)
    (job,) = claims.claim(1).jobs
    claims.retry([(job, "high", 30.0)])
    ((member, due),) = connection.zrange("rq:scheduled:high", 0, -1, withscores=True)
    assert claims.recover("") == 0
    assert claims.claim(1).jobs == [], "it has time"
    connection.zadd("rq:scheduled:high", {member: due + 3 * 3600})
    claims.recover("")
    assert [job.id for job in claims.claim(1).jobs] == [member.decode()]


DAYS_SECS = 2 * 86_400


def set_clock_back(connection: redis.Redis, secs: float) -> None:
    """Leave Redis as it was left by a clock that went ahead by so much."""
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
    found = claims.claim(1)
    assert secs - 6 <= found.set_back_secs <= secs
    assert found.next_due_secs is not None
    assert found.next_due_secs <= 26
    assert claims.claim(1).set_back_secs == 0


def test_what_the_environment_held_up_comes_at_once_and_in_order(
    redis_server: Server, claims: Claims
) -> None:
    for number in range(5):
        push(redis_server, number)
    jobs = claims.claim(5).jobs
    claims.retry([(job, "low", 30.0) for job in jobs[:3]], held_up=True)
    claims.retry([(job, "low", 30.0) for job in jobs[3:]])
    assert claims.claim(5).jobs == []
    assert claims.hurry() == 3
    assert [job.id for job in claims.claim(5).jobs] == [job.id for job in jobs[:3]]
    assert claims.hurry() == 0


@pytest.mark.parametrize("secs", [3600, DAYS_SECS])
def test_stock_workers_too_get_retries_that_a_clock_put_off(
    redis_server: Server, connection: redis.Redis, claims: Claims, secs: int
) -> None:
    """Another program's job keeps its time."""
    push(redis_server, 1)
    claims.retry([(job, "high", 4.0) for job in claims.claim(1).jobs])
    set_clock_back(connection, secs)
    connection.hset("rq:job:theirs", "status", "scheduled")
    connection.zadd("rq:scheduled:high", {"theirs": time.time() + secs})
    assert has_due_retries(connection, time.time())
    assert promote_due(connection) == 1
    assert connection.zrange("rq:scheduled:high", 0, -1) == [b"theirs"]
