"""The one owner of redis-py: how workers and commands reach Redis."""

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

QUEUES = ("high", "medium", "low")  # hooks push onto these alone; the writer serves them
SLOW, LLM = "slow", "llm"  # the writer hands on to these; a worker each
ALL_QUEUES = (*QUEUES, SLOW, LLM)

ACCEPTED_KEY = "hivepipe:accepted"


def connect(address: str) -> redis.Redis:
    """Return a client of a socket path or of `host:port/db`; nothing is sent yet.

    It never repeats a command by itself: a claim whose answer was lost would be made twice.
    """
    never = Retry(NoBackoff(), 0)
    if address.startswith("/"):
        return redis.Redis(unix_socket_path=address, retry=never)
    place, _, database = address.partition("/")
    host, _, port = place.rpartition(":")
    return redis.Redis(host=host, port=int(port), db=int(database or 0), retry=never)


def url(address: str) -> str:
    """Return the address as RQ's own tools take it."""
    return f"unix://{address}" if address.startswith("/") else f"redis://{address}"
