"""The active alerts in Redis: one hash with the number of successive checks that missed each."""

from typing import Any

from redis import Redis

STANDING_KEY = "hivepipe:alerts"
_LOOKED = b""  # a field that every check sets: without it, no check was made yet


def standing(client: Redis) -> dict[str, int] | None:
    """Return alert name -> successive checks without it, or None before the first check."""
    found: Any = client.hgetall(STANDING_KEY)
    if not found:
        return None
    return {name.decode(): int(looks) for name, looks in found.items() if name != _LOOKED}


def remember(client: Redis, looks: dict[str, int]) -> None:
    """Store the state that the next check compares with."""
    with client.pipeline() as pipe:  # one transaction
        pipe.delete(STANDING_KEY)
        pipe.hset(STANDING_KEY, _LOOKED, 0)
        for name, count in looks.items():
            pipe.hset(STANDING_KEY, name, count)
        pipe.execute()
