"""The one owner of redis-py: how workers and commands reach Redis."""

import redis

QUEUES = ("high", "medium", "low")

ACCEPTED_KEY = "hivepipe:accepted"


def connect(address: str) -> redis.Redis:
    """Return a client of a socket path or of `host:port/db`; nothing is sent yet."""
    if address.startswith("/"):
        return redis.Redis(unix_socket_path=address)
    place, _, database = address.partition("/")
    host, _, port = place.rpartition(":")
    return redis.Redis(host=host, port=int(port), db=int(database or 0))


def url(address: str) -> str:
    """Return the address as RQ's own tools take it."""
    return f"unix://{address}" if address.startswith("/") else f"redis://{address}"
