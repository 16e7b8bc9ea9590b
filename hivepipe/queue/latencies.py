"""Durations of jobs by operation, from the event to the commit of their rows.

    hivepipe:latencies    list    samples as JSON, newest first: end; by operation, step -> jobs

Redis keeps a finished job for a minute, with the times of event and commit. Once a minute a sample
counts the jobs that finished since the last sample, by ranges of duration. So hooks and commits
need no measuring code. Only the writer's queues are counted, because jobs of the other queues take
minutes or have a delay.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redis import Redis

from hivepipe.events.job_plan import utc
from hivepipe.jobs.schedule_table import is_periodic_id
from hivepipe.queue.names import QUEUES
from hivepipe.times import now

LATENCIES_KEY = "hivepipe:latencies"
MOST_SAMPLES = 180  # three hours with jobs in every minute
MOST_JOBS = 2000  # the newest jobs of a queue for each sample: 20 ms
_STEPS = 4  # steps per doubling of the duration: a percentile is at most 19 % too high

Counts = Counter[int]  # step -> jobs


@dataclass(frozen=True)
class Latency:
    """The number of jobs of one operation or of one sample, and their durations' percentiles."""

    jobs: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Latencies:
    """Latencies by operation. `course` has one entry per sample, for all operations together."""

    operations: dict[str, Latency]
    course: dict[str, Latency]


def add_sample(client: Redis) -> None:
    """Add a sample of the jobs that finished since the last sample, without periodic jobs."""
    before: Any = client.lindex(LATENCIES_KEY, 0)
    since = json.loads(before)["at"] if before else ""
    at = utc(now()[1])
    if since > at:  # the clock was set back
        since = ""
    found: dict[str, Counts] = {}
    for operation, ended, step in _finished(client):
        if since < ended <= at:
            found.setdefault(operation, Counter())[step] += 1
    if found:
        client.lpush(LATENCIES_KEY, json.dumps({"at": at, "operations": found}))
        client.ltrim(LATENCIES_KEY, 0, MOST_SAMPLES - 1)


def latencies(client: Redis) -> Latencies:
    listed: Any = client.lrange(LATENCIES_KEY, 0, -1)
    by_operation: dict[str, Counts] = {}
    course = {}
    for sample in map(json.loads, reversed(listed)):
        of_all: Counts = Counter()
        for operation, counts in sample["operations"].items():
            steps = Counter({int(step): number for step, number in counts.items()})
            by_operation.setdefault(operation, Counter()).update(steps)
            of_all.update(steps)
        course[sample["at"]] = _latency(of_all)
    found = {operation: _latency(counts) for operation, counts in sorted(by_operation.items())}
    return Latencies(found, course)


def _finished(client: Redis) -> Iterator[tuple[str, str, int]]:
    """Yield operation, end time and duration step (see `_step`) of each finished job.

    Periodic jobs and jobs of other programs are left out.
    """
    for queue in QUEUES:
        ids: Any = client.zrevrange(f"rq:finished:{queue}", 0, MOST_JOBS - 1)
        pipe = client.pipeline(transaction=False)
        for id in ids:
            if not is_periodic_id(id.decode("utf-8", "replace")):
                pipe.hmget(b"rq:job:" + id, "hp", "description", "created_at", "ended_at")
        for ours, *fields in pipe.execute():
            if ours and all(fields):
                operation, began, ended = (field.decode("utf-8", "replace") for field in fields)
                with suppress(ValueError):
                    yield operation, ended, _step(began, ended)


def _step(began: str, ended: str) -> int:
    """Return the number of a duration's step on a logarithmic scale; 0 is up to a millisecond."""
    duration = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    ms = max(duration.total_seconds() * 1000, 1)  # the clock may have been set back
    return math.ceil(_STEPS * math.log2(ms))


def _latency(counts: Counts) -> Latency:
    return Latency(counts.total(), percentile(counts, 0.5), percentile(counts, 0.99))


def percentile(counts: Counts, share: float, unit_ms: float = 1) -> float:
    """Return the upper end, in ms, of the range of durations that contains this percentile.

    Without durations, return 0.
    """
    left = math.ceil(counts.total() * share)
    for step, number in sorted(counts.items()):
        left -= number
        if left <= 0:
            return round(float(2 ** (step / _STEPS)) * unit_ms, 1)
    return 0.0


def entries(found: Latencies) -> dict[str, Any]:
    """Return the latencies in the form of the commands' JSON output."""
    return {
        "operations": {name: vars(each) for name, each in found.operations.items()},
        "course": [{"at": at, **vars(each)} for at, each in found.course.items()],
    }
