"""What a stock `rq worker` has done, counted as the writer counts what it acknowledges.

RQ marks a job finished by itself and lets it expire after a minute. So the job is noted when its
effect is committed, by its id alone, and counted when RQ has finished it, or forgotten it since:
once, however often it is executed and whoever acknowledges it in the end.

    hivepipe:executed   set   ids that a stock worker has executed and nobody has counted
"""

from redis import Redis

EXECUTED_KEY = "hivepipe:executed"

# ARGV: id. A job without our marker never came into the accounts.
_NOTE = f"""
if redis.call('HEXISTS', 'rq:job:' .. ARGV[1], 'hp') == 1 then
  redis.call('SADD', '{EXECUTED_KEY}', ARGV[1])
end
"""

# To be run by itself, or before a look at the accounts: in one step with it.
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


def note_executed(connection: Redis, job_id: str) -> None:
    """Note that the effect of a job, which RQ is still executing, is committed."""
    connection.eval(_NOTE, 0, job_id)


def count_executed(connection: Redis) -> None:
    """Count what RQ has finished meanwhile."""
    connection.eval(COUNT, 0)
