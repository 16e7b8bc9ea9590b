"""Durations of hooks by event, from the start of a hook's process until it sends the event.

    hivepipe:hook_times          hash    "<event> <step>" -> hooks since the last sample
    hivepipe:hook_times:looks    list    samples as JSON, newest first

The command that sends the event also increments a counter for the hook's range of durations
(hivepipe.hook.hand_over). Once a minute the counts become a sample, and the oldest sample is
dropped. Hooks that send nothing and hooks that cannot reach Redis are not counted.
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from redis import Redis

from hivepipe.queue.latencies import MOST_SAMPLES, Counts, percentile

HOOK_TIMES_KEY = "hivepipe:hook_times"
SAMPLES_KEY = "hivepipe:hook_times:looks"
_US = 1e-3  # unit of the steps, in ms


@dataclass(frozen=True)
class HookTime:
    """The number of hooks of an event, and the percentiles of their durations."""

    hooks: int
    p50_ms: float
    p99_ms: float


def add_sample(client: Redis) -> None:
    """Turn the counts since the last sample into a new sample."""
    with client.pipeline() as both:
        both.hgetall(HOOK_TIMES_KEY)
        both.delete(HOOK_TIMES_KEY)
        found, _ = both.execute()
    if found:
        client.lpush(SAMPLES_KEY, json.dumps(_numbers(found)))
        client.ltrim(SAMPLES_KEY, 0, MOST_SAMPLES - 1)


def hook_times(client: Redis) -> dict[str, HookTime]:
    """Return the hooks' durations by event, from the samples and the counts after them."""
    listed: Any = client.lrange(SAMPLES_KEY, 0, -1)
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
