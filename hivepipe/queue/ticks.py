"""Ticks in Redis: the schedule that rq-scheduler keeps, changed by one script per step.

rq-scheduler by itself pushes the same id again and again while no writer runs. It also loses a
schedule when it dies between removing an entry from its set and adding it again.

    rq:scheduler:scheduled_jobs   zset   ticks; score = next due time
    rq:job:tick-<name>            hash   RQ's fields, and ours: hp, hp_interval
    hivepipe:triggered            hash   rows to run now: name -> cause
    hivepipe:periodic             int    periodic jobs ever enqueued; all others are in accepted
"""

from collections.abc import Sequence
from typing import Any

from redis import Redis

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
from hivepipe.queue.client import RETRY_SECS, job_data
from hivepipe.queue.connection import PERIODIC_KEY, enqueue
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.stock_jobs import EXECUTED_KEY

SCHEDULED_KEY = "rq:scheduler:scheduled_jobs"
LOCK_KEY = "rq:scheduler_lock"  # the name that rq-scheduler gives it
TRIGGERED_KEY = "hivepipe:triggered"
TICK_PREFIX = b"tick-"

# ARGV: id, queue, now, next due, data, now in RQ's format. A tick that is still waiting is not
# pushed twice; it gets the data of the newer slot. The version is written with the data: an older
# scheduler may have made the hash, and an older writer must leave what it cannot read.
_FIRE = f"""
local id, q, now, due, data, at = unpack(ARGV)
local job, scheduled = 'rq:job:' .. id, '{SCHEDULED_KEY}'
local score = redis.call('ZSCORE', scheduled, id)
if not score or tonumber(score) > tonumber(now) then return 0 end
if redis.call('EXISTS', job) == 0 then
  redis.call('ZREM', scheduled, id)  -- half of it is lost: it is made anew
  return 0
end
if redis.call('ZSCORE', 'rq:wip:' .. q, id .. ':hivepipe') then return 0 end
redis.call('HSET', job, 'status', 'queued', 'origin', q, 'enqueued_at', at, 'data', data,
  'hp', '{ENVELOPE_VERSION}', 'retries_left', '{len(RETRY_SECS)}',
  'retry_intervals', '{list(RETRY_SECS)}')  -- rq-scheduler gives it none
-- The last turn, if it died with a stock worker: this one makes good for it.
redis.call('INCRBY', 'hivepipe:discarded', redis.call('ZREM', 'rq:failed:' .. q, id))
redis.call('DEL', 'rq:results:' .. id)
redis.call('ZADD', scheduled, due, id)
if not redis.call('LPOS', 'rq:queue:' .. q, id) then
  redis.call('SADD', 'rq:queues', 'rq:queue:' .. q)
  redis.call('RPUSH', 'rq:queue:' .. q, id)
  redis.call('INCR', '{PERIODIC_KEY}')
  if redis.call('LLEN', 'hivepipe:bell') == 0 then redis.call('RPUSH', 'hivepipe:bell', 1) end
end
return 1
"""

# The tick stays for its next run: it is neither emptied nor expired. ARGV: now in RQ's format; then
# id, queue for each tick
_FINISH = """
for i = 2, #ARGV, 2 do
  local id, q = ARGV[i], ARGV[i + 1]
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':hivepipe') == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'finished', 'ended_at', ARGV[1])
    redis.call('INCR', 'hivepipe:done')
  end
end
"""

# Remove a tick. One that is being executed is removed the next time. ARGV: id, queue
_FORGET = f"""
local id, q = ARGV[1], ARGV[2]
redis.call('ZREM', '{SCHEDULED_KEY}', id)
if redis.call('ZSCORE', 'rq:wip:' .. q, id .. ':hivepipe') then return 0 end
local waited = redis.call('LREM', 'rq:queue:' .. q, 0, id)
redis.call('INCRBY', 'hivepipe:discarded', waited)
return redis.call('DEL', 'rq:job:' .. id)
"""

# ARGV: queue, id
_SUPERSEDE = f"""
if redis.call('ZREM', 'rq:failed:' .. ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('DEL', 'rq:job:' .. ARGV[2], 'rq:results:' .. ARGV[2])
redis.call('SREM', '{EXECUTED_KEY}', ARGV[2])
return redis.call('INCR', 'hivepipe:discarded')
"""


def due_times(connection: Redis) -> dict[str, float]:
    """Return tick id -> due time; entries of other programs are left out."""
    found: Any = connection.zrange(SCHEDULED_KEY, 0, -1, withscores=True)
    return {id.decode(): at for id, at in found if id.startswith(TICK_PREFIX)}


def clock_runs(connection: Redis) -> bool:
    """Tell whether a scheduler runs."""
    return bool(connection.exists(LOCK_KEY))


def known_interval(connection: Redis, row: Periodic) -> int | None:
    """Return the interval in seconds that a row's tick was made for; None: there is no tick."""
    found: Any = connection.hget(f"rq:job:{tick_id(row.name)}", "hp_interval")
    return int(found) if found else None


def set_due(connection: Redis, row: Periodic, at: float) -> None:
    """Set the due time of an existing tick."""
    connection.zadd(SCHEDULED_KEY, {tick_id(row.name): at})


def trigger(connection: Redis, name: str, cause: str) -> None:
    """Request an extra run of a row. Many requests are one run, with the last cause.

    The row's regular runs are not changed.
    """
    connection.hset(TRIGGERED_KEY, name, cause)


def run_triggered(connection: Redis, rows: Sequence[Periodic], now_ns: int) -> None:
    """Enqueue the extra runs that were requested."""
    found: Any = connection.hgetall(TRIGGERED_KEY)
    if not found:
        return
    causes = {name.decode(): cause.decode() for name, cause in found.items()}
    jobs = [
        extra_job(row.name, row.operation, causes[row.name], now_ns)
        for row in rows
        if row.name in causes
    ]
    if jobs:
        enqueue(connection, jobs, PERIODIC_KEY)
    connection.hdel(TRIGGERED_KEY, *causes)


def fire(connection: Redis, row: Periodic, now: float) -> bool:
    """Enqueue the tick of a row; return False if it is not due or is being executed."""
    tick = tick_of(row, slot_at(now, row.interval_secs), int(now * 1e9))
    due = next_due(now, row.interval_secs)
    data, at = job_data(tick.envelope), tick.created_at
    return bool(connection.eval(_FIRE, 0, tick.id, TICK_QUEUE, now, due, data, at))


def finish(connection: Redis, ticks: Sequence[tuple[str, str]], at: str) -> None:
    """Acknowledge executed ticks, each with its queue; `at` is now in RQ's format."""
    arguments = [text for tick in ticks for text in tick]
    connection.eval(_FINISH, 0, at, *arguments)


def forget_others(connection: Redis, rows: Sequence[Periodic]) -> list[str]:
    """Remove the ticks of rows that no longer exist; return their ids."""
    wanted = {tick_id(row.name).encode() for row in rows}
    listed: Any = connection.zrange(SCHEDULED_KEY, 0, -1)
    keys: Any = connection.scan_iter(b"rq:job:" + TICK_PREFIX + b"*", count=1000)
    found = {*listed, *(key.removeprefix(b"rq:job:") for key in keys)}
    gone = sorted(id for id in found if id.startswith(TICK_PREFIX) and id not in wanted)
    for id in gone:
        connection.eval(_FORGET, 0, id, TICK_QUEUE)
    return [id.decode() for id in gone]


def forget(connection: Redis, row: Periodic) -> None:
    """Remove the tick of a row."""
    connection.eval(_FORGET, 0, tick_id(row.name), TICK_QUEUE)


def drop_superseded(connection: Redis) -> int:
    """Discard the failed periodic jobs except the newest of each row; return how many.

    The next slot tries again, so one failed job per row is enough to act on.
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
