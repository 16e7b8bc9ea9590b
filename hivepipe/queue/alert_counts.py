"""The active alerts in Redis.

hivepipe:alerts    hash    alert -> number of successive checks without it
"""

from typing import Any

from redis import Redis

from hivepipe.queue.scripts import script

ALERTS_KEY = "hivepipe:alerts"
_CHECKED = b""  # every check sets this field: without it, no check was made yet

_SAVE = script("save_alerts")


def load(client: Redis) -> dict[str, int] | None:
    """Return alert -> number of successive checks without it, or None before the first check."""
    found: Any = client.hgetall(ALERTS_KEY)
    if not found:
        return None
    return {name.decode(): int(misses) for name, misses in found.items() if name != _CHECKED}


def save(client: Redis, misses: dict[str, int]) -> None:
    """Store the counts `misses` for the next check, even if the memory of Redis is full."""
    fields = [part for pair in misses.items() for part in pair]
    client.eval(_SAVE, 1, ALERTS_KEY, _CHECKED, 0, *fields)
