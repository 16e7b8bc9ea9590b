"""Active alerts, and for how many checks in a row each was not seen: one hash in Redis."""

from typing import Any

from redis import Redis

STANDING_KEY = "hivepipe:alerts"
_LOOKED = b""  # a field that is always there, to tell "no alert" from "no check yet"


def standing(client: Redis) -> dict[str, int] | None:
    """Return alert name -> checks in a row without it; None: Redis knows of no check yet."""
    found: Any = client.hgetall(STANDING_KEY)
    if not found:
        return None
    return {name.decode(): int(looks) for name, looks in found.items() if name != _LOOKED}


def remember(client: Redis, looks: dict[str, int]) -> None:
    """Replace the state that the next check compares with."""
    with client.pipeline() as pipe:  # one transaction
        pipe.delete(STANDING_KEY)
        pipe.hset(STANDING_KEY, _LOOKED, 0)
        for name, count in looks.items():
            pipe.hset(STANDING_KEY, name, count)
        pipe.execute()
