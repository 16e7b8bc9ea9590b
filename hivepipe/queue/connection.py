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


def connect(address: str, *, limit_secs: float | None = None) -> redis.Redis:
    """Return a client for a socket path or a URL. It connects at its first command.

    The client never repeats a command: if the reply to a claim was lost, a second claim would take
    more jobs. `limit_secs` is the longest wait for a reply. Without it, the wait on a socket has no
    limit, and the wait on a URL has the limit REPLY_SECS.
    """
    never = Retry(NoBackoff(), 0)
    if address.startswith("/"):
        return redis.Redis(
            unix_socket_path=address, retry=never, socket_timeout=limit_secs, **_PLAIN
        )
    # A remote server can vanish without closing the connection. No command takes REPLY_SECS.
    return redis.Redis.from_url(
        address,
        retry=never,
        socket_connect_timeout=min(CONNECT_SECS, limit_secs or CONNECT_SECS),
        socket_timeout=limit_secs or REPLY_SECS,
        **_PLAIN,
    )


def url(address: str) -> str:
    """Return the address as a URL for RQ's own tools."""
    return f"unix://{address}" if address.startswith("/") else address
