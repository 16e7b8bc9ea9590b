"""The active alerts in Redis: one hash with the number of successive checks that missed each."""

from typing import Any

from redis import Redis

ALERTS_KEY = "hivepipe:alerts"
_CHECKED = b""  # a field that every check sets: without it, no check was made yet


def load(client: Redis) -> dict[str, int] | None:
    """Return alert name -> successive checks without it, or None before the first check."""
    found: Any = client.hgetall(ALERTS_KEY)
    if not found:
        return None
    return {name.decode(): int(misses) for name, misses in found.items() if name != _CHECKED}


def save(client: Redis, misses: dict[str, int]) -> None:
    """Store the state that the next check compares with."""
    with client.pipeline() as pipe:  # one transaction
        pipe.delete(ALERTS_KEY)
        pipe.hset(ALERTS_KEY, _CHECKED, 0)
        for name, count in misses.items():
            pipe.hset(ALERTS_KEY, name, count)
        pipe.execute()
