"""Which alerts stand, and for how many looks each was not seen: one hash in Redis."""

from typing import Any

from redis import Redis

STANDING_KEY = "hivepipe:alerts"
_LOOKED = b""  # there is a field for it, so that no alert and no knowledge are two things


def standing(client: Redis) -> dict[str, int] | None:
    """Return for how many looks in a row each was not seen; None: Redis knows of no look yet."""
    found: Any = client.hgetall(STANDING_KEY)
    if not found:
        return None
    return {name.decode(): int(looks) for name, looks in found.items() if name != _LOOKED}


def remember(client: Redis, looks: dict[str, int]) -> None:
    """Keep what the next look has to know."""
    with client.pipeline() as pipe:  # one transaction
        pipe.delete(STANDING_KEY)
        pipe.hset(STANDING_KEY, _LOOKED, 0)
        for name, count in looks.items():
            pipe.hset(STANDING_KEY, name, count)
        pipe.execute()
