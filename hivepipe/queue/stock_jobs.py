"""Jobs of stock `rq worker`s: count the finished ones and promote retries that are due.

RQ marks a job finished by itself and lets it expire after a minute. So the job's id is noted when
its effect is committed. The job is counted once RQ has finished or expired it: exactly once,
however often it is executed and whichever worker acknowledges it.

    hivepipe:executed   set   ids that a stock worker has executed and that are not counted yet
"""

from typing import Any

from redis import Redis

from hivepipe.queue.names import QUEUES

EXECUTED_KEY = "hivepipe:executed"

# ARGV: id. A job without our marker is in no counter.
_NOTE = f"""
if redis.call('HEXISTS', 'rq:job:' .. ARGV[1], 'hp') == 1 then
  redis.call('SADD', '{EXECUTED_KEY}', ARGV[1])
end
"""

# Runs by itself, or in the same script as a reading of the counters.
COUNT = f"""
local done = 0
for _, id in ipairs(redis.call('SMEMBERS', '{EXECUTED_KEY}')) do
  local job = 'rq:job:' .. id
  local is_there = redis.call('TYPE', job).ok == 'hash'
  if not is_there or redis.call('HGET', job, 'status') == 'finished' then
    redis.call('SREM', '{EXECUTED_KEY}', id)
    done = done + 1
  end
end
if done > 0 then redis.call('INCRBY', 'hivepipe:done', done) end
"""


# No retry in these queues is delayed longer, unless the clock was set back.
LONGEST_SECS = 60
# RQ's scheduler does this once a second, if a worker runs it. ARGV: queues
_PROMOTE = f"""
local now, promoted = tonumber(redis.call('TIME')[1]), 0
for _, q in ipairs(ARGV) do
  local scheduled = 'rq:scheduled:' .. q
  local far = now + {LONGEST_SECS}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', scheduled, far, '+inf', 'LIMIT', 0, 500)) do
    local job = 'rq:job:' .. id
    if redis.call('TYPE', job).ok == 'hash' and redis.call('HEXISTS', job, 'hp') == 1 then
      redis.call('ZADD', scheduled, now, id)
    end
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', scheduled, '-inf', now, 'LIMIT', 0, 500)) do
    redis.call('ZREM', scheduled, id)
    if redis.call('TYPE', 'rq:job:' .. id).ok == 'hash' then
      redis.call('HSET', 'rq:job:' .. id, 'status', 'queued', 'origin', q)
      redis.call('RPUSH', 'rq:queue:' .. q, id)
      promoted = promoted + 1
    end
  end
end
return promoted
"""


def promote_due(connection: Redis) -> int:
    """Put jobs whose next attempt is due back into their queues; return how many."""
    promoted: Any = connection.eval(_PROMOTE, 0, *QUEUES)
    return int(promoted)


def some_are_due(connection: Redis, now: float) -> bool:
    """Tell whether a retry is due, or is scheduled later than any retry of ours can be."""
    spans = (("-inf", now), (now + LONGEST_SECS, "+inf"))
    keys = [f"rq:scheduled:{queue}" for queue in QUEUES]
    return any(connection.zcount(key, *span) for key in keys for span in spans)


def note_executed(connection: Redis, job_id: str) -> None:
    """Note that the effect of a job, which RQ is still executing, is committed."""
    connection.eval(_NOTE, 0, job_id)


def count_tick(connection: Redis) -> None:
    """Count a run of a tick at once: its id is reused, perhaps before RQ has finished it."""
    connection.incr("hivepipe:done")


def count_executed(connection: Redis) -> None:
    """Count the noted jobs that RQ has finished meanwhile."""
    connection.eval(COUNT, 0)
