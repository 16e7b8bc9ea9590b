"""Read the figures of the queues and workers from Redis, and keep samples of the counts of jobs.

hivepipe:samples    list    JSON, newest first: time; jobs and effectless jobs by operation
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from redis import Redis

from hivepipe.events.job_plan import ENVELOPE_VERSION
from hivepipe.queue import claims, connection, ticks
from hivepipe.queue.hook_times import HookTime, hook_times
from hivepipe.queue.latencies import Latencies, entries, latencies
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.rq_workers import RqWorker, rq_workers
from hivepipe.times import age_secs

SAMPLES_KEY = "hivepipe:samples"
MOST_SAMPLES = 20


@dataclass(frozen=True)
class Figures:
    """The figures of queues, jobs and workers at one moment."""

    queues: dict[str, int]
    retried: int  # retries ever scheduled
    periodic: int
    accounts: dict[str, int]
    oldest_waiting_secs: float | None
    store_trouble: dict[str, Any] | None
    newer_version: int | None
    operations: dict[str, int]  # jobs ever done, by operation
    workers: list[RqWorker]
    scheduler: bool  # True if a scheduler runs
    latencies: Latencies
    hook_times: dict[str, HookTime]


def figures(client: Redis) -> Figures:
    operations: Any = client.hgetall(claims.OPERATIONS_KEY)
    return Figures(
        queues={name: _length(client, name) for name in ALL_QUEUES},
        retried=_number(client, claims.RETRIED_KEY),
        periodic=_number(client, connection.PERIODIC_KEY),
        accounts=claims.accounts(client),
        oldest_waiting_secs=_oldest_secs(client),
        store_trouble=_trouble(client.hgetall(claims.TROUBLE_KEY)),
        newer_version=_newer(client.get(claims.NEWER_KEY)),
        operations={name.decode(): int(count) for name, count in sorted(operations.items())},
        workers=rq_workers(client),
        scheduler=ticks.scheduler_runs(client),
        latencies=latencies(client),
        hook_times=hook_times(client),
    )


def add_sample(client: Redis, done: dict[str, int], effectless: dict[str, int]) -> None:
    """Store the current counts of jobs as a sample, with which `shares` compares later counts."""
    sample = json.dumps({"at": time.time(), "done": done, "effectless": effectless})
    client.lpush(SAMPLES_KEY, sample)
    client.ltrim(SAMPLES_KEY, 0, MOST_SAMPLES - 1)


def shares(
    client: Redis, done: dict[str, int], effectless: dict[str, int], secs: float
) -> dict[str, tuple[int, int]]:
    """Return operation -> (jobs without effect, all jobs) for the last `secs` seconds.

    An operation without such jobs is left out. If no sample is that recent, all jobs since the
    start of Redis' data are counted.
    """
    listed: Any = client.lrange(SAMPLES_KEY, 0, -1)
    since = time.time() - secs
    samples = [sample for raw in listed if (sample := json.loads(raw))["at"] >= since]
    first = samples[-1] if samples else {"done": {}, "effectless": {}}
    found = {}
    for operation, count in effectless.items():
        nothing = count - first["effectless"].get(operation, 0)
        all_ = done.get(operation, 0) - first["done"].get(operation, 0)
        if nothing > 0:
            found[operation] = (nothing, max(all_, nothing))
    return found


def as_report(found: Figures) -> dict[str, Any]:
    """Return the figures in the form in which commands print them as JSON."""
    report = asdict(found) | {"accepted": found.accounts["accepted"]}
    report["workers"] = [
        worker._asdict() | {"alive": worker.is_alive, "queues": list(worker.queues)}
        for worker in found.workers
    ]
    report["latencies"] = entries(found.latencies)
    return report


def _length(client: Redis, queue: str) -> int:
    found: Any = client.llen(f"rq:queue:{queue}")
    return int(found)


def _number(client: Redis, key: str) -> int:
    found: Any = client.get(key)
    return int(found or 0)


def _newer(version: Any) -> int | None:
    """Return the envelope version of waiting jobs if this hivepipe cannot read it, else None."""
    return int(version) if version and int(version) > ENVELOPE_VERSION else None


def _oldest_secs(client: Redis) -> float | None:
    """Return the age in seconds of the oldest queued job, or None if no job is queued.

    Ids without a job hash are ignored.
    """
    heads: list[Any] = [client.lindex(f"rq:queue:{name}", 0) for name in ALL_QUEUES]
    pipe = client.pipeline(transaction=False)
    for id in filter(None, heads):
        pipe.hget(b"rq:job:" + id, "enqueued_at")
    found = pipe.execute(raise_on_error=False)
    times = [at.decode("utf-8", "replace") for at in found if isinstance(at, bytes)]
    return max((age_secs(at) or 0.0 for at in times), default=None)


def _trouble(found: Any) -> dict[str, Any] | None:
    """Return for how many seconds the store is unwritable, and why; None if it is writable."""
    if not found:
        return None
    secs = time.time() - float(found[b"since"])
    return {"secs": round(secs, 1), "reason": found[b"reason"].decode("utf-8", "replace")}
