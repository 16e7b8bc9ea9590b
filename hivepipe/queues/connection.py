"""The one owner of redis-py: how workers and commands reach Redis."""

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hivepipe.jobs import Message
from hivepipe.queues import client, endpoint

CONNECT_SECS = 5
REPLY_SECS = 10
ACCEPTED_KEY = "hivepipe:accepted"
PERIODIC_KEY = "hivepipe:periodic"


def connect(address: str) -> redis.Redis:
    """Return a client of a socket path or of a URL; nothing is sent yet.

    It never repeats a command by itself: a claim whose answer was lost would be made twice.
    """
    never = Retry(NoBackoff(), 0)
    if address.startswith("/"):
        return redis.Redis(unix_socket_path=address, retry=never)
    # A server behind a network may vanish without a word; no command of ours takes so long.
    return redis.Redis.from_url(
        address, retry=never, socket_connect_timeout=CONNECT_SECS, socket_timeout=REPLY_SECS
    )


def url(address: str) -> str:
    """Return the address as RQ's own tools take it."""
    return f"unix://{address}" if address.startswith("/") else address


def send(
    connection: redis.Redis,
    address: str,
    messages: list[Message],
    secs: float,
    counter: str = ACCEPTED_KEY,
) -> int:
    """Enqueue messages as hooks do, over a socket if that is local; return how many were new.

    RefusedError: Redis cannot be reached, or says no.
    """
    if endpoint.is_local(address):
        return client.push(address, messages, secs, counter)
    try:
        return enqueue(connection, messages, counter)
    except redis.RedisError as error:
        raise client.RefusedError(str(error)) from None


def enqueue(connection: redis.Redis, messages: list[Message], counter: str) -> int:
    """Enqueue messages over this connection; return how many were new."""
    _, script, _, *arguments = client.eval_command(messages, counter=counter)
    new: Any = connection.eval(script.decode(), 1, *arguments)
    return int(new)
