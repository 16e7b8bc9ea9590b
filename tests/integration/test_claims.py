"""What the scripts of claiming leave behind in Redis: true accounts, and nothing for ever."""

import base64
import zlib

import pytest
import redis

from hivepipe.jobs import Message
from hivepipe.queues import client
from hivepipe.queues.claims import Claims, accounts
from hivepipe.queues.dead_letters import dead_letters
from hivepipe.queues.names import QUEUES
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
    """However often it is claimed: its worker died, or somebody sent the dead letter back."""
    connection.hset("rq:job:theirs", mapping={"status": "queued", "data": b"x"})
    connection.rpush("rq:queue:high", "theirs")
    claims.claim(1)
    assert claims.recover("") == 1
    bury(claims)
    assert (accounts(connection)["accepted"], accounts(connection)["dead"]) == (1, 1)
    with dead_letters(redis_server.address) as letters:
        assert letters.retry(letters.letters()) == 1
    bury(claims)
    assert (accounts(connection)["accepted"], accounts(connection)["dead"]) == (1, 1)


def test_a_strangers_job_is_told_of_once_whichever_queues_wait(connection: redis.Redis) -> None:
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
    said = zlib.decompress(base64.b64decode(entry[b"exc_string"])).decode()
    assert said == "ValueError: not a number: ***REDACTED***"
    with dead_letters(redis_server.address) as letters:
        assert letters.retry(letters.letters()) == 1
    (job,) = claims.claim(1).jobs
    claims.acknowledge([(job, "an operation")])
    assert connection.keys("rq:results:*") == []


def test_what_a_clock_that_was_set_back_has_put_off_is_due(
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
