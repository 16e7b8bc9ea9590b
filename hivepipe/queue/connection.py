"""Connections of workers and commands to Redis. Only this module creates a redis-py client."""

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

CONNECT_SECS = 5
REPLY_SECS = 10
ACCEPTED_KEY = "hivepipe:accepted"
PERIODIC_KEY = "hivepipe:periodic"

# For each connection redis-py looks up its own version, which takes 6 ms, and sends it to Redis.
_PLAIN: dict[str, Any] = {"driver_info": None} if hasattr(redis, "DriverInfo") else {}


def connect(address: str, *, has_limit: bool = False) -> redis.Redis:
    """Return a client for a socket path or a URL, which connects at its first command.

    The client never retries: a claim whose reply was lost would be executed twice. With
    `has_limit`, it also waits for a home's own server only for a limited time; workers wait longer.
    """
    never = Retry(NoBackoff(), 0)
    if address.startswith("/"):
        secs = REPLY_SECS if has_limit else None
        return redis.Redis(unix_socket_path=address, retry=never, socket_timeout=secs, **_PLAIN)
    # A remote server can vanish without closing the connection. No command takes as long.
    return redis.Redis.from_url(
        address,
        retry=never,
        socket_connect_timeout=CONNECT_SECS,
        socket_timeout=REPLY_SECS,
        **_PLAIN,
    )


def url(address: str) -> str:
    """Return the address as a URL for RQ's own tools."""
    return f"unix://{address}" if address.startswith("/") else address
