"""How long hooks took, by event: from the start of their process until they hand their event over.

A hook counts itself in the command that hands over (hivepipe.hook.hand_over), by a step of time:
nothing else is written. Once a minute the counts are put aside, so that old ones go. Not counted
are hooks with nothing to hand over, and those that found no Redis.
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from redis import Redis

from hivepipe.queue.latencies import MOST_LOOKS, Counts, percentile

HOOK_TIMES_KEY = "hivepipe:hook_times"  # hash: "<event> <step>" -> hooks since the last look
LOOKS_KEY = "hivepipe:hook_times:looks"  # list, newest first: such hashes
_US = 1e-3  # the unit of the steps, in ms


@dataclass(frozen=True)
class HookTime:
    """The hooks of an event, and the times that 50 and 99 % of them took."""

    hooks: int
    p50_ms: float
    p99_ms: float


def look(client: Redis) -> None:
    """Put the counts since the last look aside."""
    with client.pipeline() as both:
        both.hgetall(HOOK_TIMES_KEY)
        both.delete(HOOK_TIMES_KEY)
        found, _ = both.execute()
    if found:
        client.lpush(LOOKS_KEY, json.dumps(_numbers(found)))
        client.ltrim(LOOKS_KEY, 0, MOST_LOOKS - 1)


def hook_times(client: Redis) -> dict[str, HookTime]:
    """Return the times by event: those put aside, and those since."""
    listed: Any = client.lrange(LOOKS_KEY, 0, -1)
    found: dict[str, Counts] = {}
    for numbers in [_numbers(client.hgetall(HOOK_TIMES_KEY)), *map(json.loads, listed)]:
        for name, number in numbers.items():
            event, _, step = name.rpartition(" ")
            found.setdefault(event, Counter())[int(step)] += number
    return {event: _time(counts) for event, counts in sorted(found.items())}


def _numbers(found: Any) -> dict[str, int]:
    return {name.decode(): int(number) for name, number in found.items()}


def _time(counts: Counts) -> HookTime:
    p50, p99 = (percentile(counts, share, _US) for share in (0.5, 0.99))
    return HookTime(counts.total(), p50, p99)
