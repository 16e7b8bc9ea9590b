"""Ticks: rq-scheduler's entries for periodic operations, changed by one script per step.

By itself, rq-scheduler pushes the same id repeatedly while no writer runs. rq-scheduler also loses
an entry if it dies after it has removed the entry from its set and before it adds the entry again.

    rq:scheduler:scheduled_jobs   zset   ticks; score = next due time
    rq:job:tick-<name>            hash   RQ's fields, and ours: hp, hp_interval
    hivepipe:triggered            hash   operations to run now: name -> cause
    hivepipe:periodic             int    number of periodic jobs ever enqueued
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from redis import Redis, WatchError

from hivepipe.events.job_plan import ENVELOPE_VERSION
from hivepipe.jobs.schedule_table import (
    TICK_QUEUE,
    Periodic,
    extra_job,
    name_and_slot,
    next_due,
    slot_at,
    tick_id,
    tick_of,
)
from hivepipe.queue.claims import EXECUTION
from hivepipe.queue.client import RETRY_SECS, job_data
from hivepipe.queue.connection import PERIODIC_KEY
from hivepipe.queue.enqueue import enqueue_over
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.scripts import script
from hivepipe.queue.stock_jobs import EXECUTED_KEY

SCHEDULED_KEY = "rq:scheduler:scheduled_jobs"
LOCK_KEY = "rq:scheduler_lock"  # the name that rq-scheduler gives it
TRIGGERED_KEY = "hivepipe:triggered"
TICK_PREFIX = b"tick-"

_FIRE = script(
    "fire_tick",
    ENVELOPE_VERSION=str(ENVELOPE_VERSION),
    EXECUTION=EXECUTION,
    PERIODIC_KEY=PERIODIC_KEY,
    RETRIES=str(len(RETRY_SECS)),
    RETRY_INTERVALS=str(list(RETRY_SECS)),
    SCHEDULED_KEY=SCHEDULED_KEY,
)

_FINISH = script("finish_ticks", EXECUTION=EXECUTION)

_FORGET = script("forget_tick", EXECUTION=EXECUTION, SCHEDULED_KEY=SCHEDULED_KEY)

_SUPERSEDE = script("supersede_failed", EXECUTED_KEY=EXECUTED_KEY)


def due_times(connection: Redis) -> dict[str, float]:
    """Return tick id -> due time, without the entries of other programs."""
    found: Any = connection.zrange(SCHEDULED_KEY, 0, -1, withscores=True)
    return {id.decode(): at for id, at in found if id.startswith(TICK_PREFIX)}


def scheduler_runs(connection: Redis) -> bool:
    return bool(connection.exists(LOCK_KEY))


def known_interval(connection: Redis, row: Periodic) -> int | None:
    """Return the interval in seconds of an operation's tick, or None if it has no tick."""
    found: Any = connection.hget(f"rq:job:{tick_id(row.name)}", "hp_interval")
    return int(found) if found else None


def set_due(connection: Redis, row: Periodic, at: float) -> None:
    connection.zadd(SCHEDULED_KEY, {tick_id(row.name): at})


def trigger(connection: Redis, name: str, cause: str) -> None:
    """Request one extra run of the operation `name`; of several requests, the last cause counts."""
    connection.hset(TRIGGERED_KEY, name, cause)


def run_triggered(connection: Redis, rows: Sequence[Periodic], now_ns: int) -> None:
    """Enqueue the extra runs that were requested.

    A request that arrives during this call must not be removed before its run. So in that case no
    request is removed, and the next call enqueues all of them again.
    """
    with connection.pipeline() as watching, suppress(WatchError):
        watching.watch(TRIGGERED_KEY)  # type: ignore[no-untyped-call]
        found: Any = watching.hgetall(TRIGGERED_KEY)
        if not found:
            return
        causes = {name.decode(): cause.decode() for name, cause in found.items()}
        jobs = [
            extra_job(row.name, row.operation, causes[row.name], now_ns)
            for row in rows
            if row.name in causes
        ]
        if jobs:
            enqueue_over(connection, jobs, PERIODIC_KEY)
        watching.multi()
        watching.delete(TRIGGERED_KEY)
        watching.execute()


def fire(connection: Redis, row: Periodic, now: float) -> bool:
    """Enqueue the tick of a periodic operation; return False if it is not due or still running."""
    tick = tick_of(row, slot_at(now, row.interval_secs), int(now * 1e9))
    due = next_due(now, row.interval_secs)
    data, at = job_data(tick.envelope), tick.created_at
    return bool(connection.eval(_FIRE, 0, tick.id, TICK_QUEUE, now, due, data, at))


def finish(connection: Redis, ticks: Sequence[tuple[str, str]], at: str) -> None:
    """Acknowledge executed ticks, each with its queue; `at` is the present time in RQ's format."""
    arguments = [text for tick in ticks for text in tick]
    connection.eval(_FINISH, 0, at, *arguments)


def forget_others(connection: Redis, rows: Sequence[Periodic]) -> list[str]:
    """Remove the ticks of operations that no longer exist; return the ids of these ticks."""
    wanted = {tick_id(row.name).encode() for row in rows}
    listed: Any = connection.zrange(SCHEDULED_KEY, 0, -1)
    keys: Any = connection.scan_iter(b"rq:job:" + TICK_PREFIX + b"*", count=1000)
    found = {*listed, *(key.removeprefix(b"rq:job:") for key in keys)}
    gone = sorted(id for id in found if id.startswith(TICK_PREFIX) and id not in wanted)
    for id in gone:
        connection.eval(_FORGET, 0, id, TICK_QUEUE)
    return [id.decode() for id in gone]


def forget(connection: Redis, row: Periodic) -> None:
    connection.eval(_FORGET, 0, tick_id(row.name), TICK_QUEUE)


def drop_superseded(connection: Redis) -> int:
    """Discard all failed periodic jobs except the newest of each kind; return their number.

    The kinds are the periodic jobs by name, and their extra runs by name. A periodic job runs again
    anyway, so one failed job of each kind is enough for a person.
    """
    found: dict[str, list[tuple[int, str, str]]] = {}
    for queue in ALL_QUEUES:
        ids: Any = connection.zrange(f"rq:failed:{queue}", 0, -1)
        for id in ids:
            known = name_and_slot(id.decode("utf-8", "replace"))
            if known:
                found.setdefault(known[0], []).append((known[1], queue, id.decode()))
    older = [entry for entries in found.values() for entry in sorted(entries)[:-1]]
    return sum(bool(connection.eval(_SUPERSEDE, 0, queue, id)) for _, queue, id in older)
