-- Mark jobs as finished: they leave the registry of running jobs, and their data is emptied. A job
-- that is not in the registry is left unchanged: its lease ended, and it will be executed again.
-- KEYS       none
-- ARGV[1]    key of RQ's hash of the worker
-- ARGV[2]    now in RQ's format
-- ARGV[3]    seconds to keep a finished job
-- ARGV[4]    data of a finished job
-- ARGV[5..]  id, queue and operation of each job, one after the other
-- Returns    number of jobs that the worker still held
-- Constants  EXECUTED_KEY, EXECUTION, OPERATIONS_KEY

local worker, at, keep, emptied = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now = tonumber(redis.call('TIME')[1])
local done, executed, queues = 0, redis.call('EXISTS', EXECUTED_KEY) == 1, {}
for i = 5, #ARGV, 3 do
  local id, q, operation = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  -- If it is missing, its lease ended and the job was requeued. Its next execution has no effect.
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':' .. EXECUTION) == 1 then
    local job = 'rq:job:' .. id
    redis.call('HSET', job, 'status', 'finished', 'ended_at', at, 'data', emptied,
      'description', operation)
    redis.call('EXPIRE', job, keep)
    redis.call('ZADD', 'rq:finished:' .. q, now + keep, id)
    queues[q] = true
    if executed then redis.call('SREM', EXECUTED_KEY, id) end  -- a stock worker noted it
    redis.call('HINCRBY', OPERATIONS_KEY, operation, 1)
    done = done + 1
  end
end
-- RQ removes expired entries only when a client lists the registry, which may never happen.
for q in pairs(queues) do redis.call('ZREMRANGEBYSCORE', 'rq:finished:' .. q, '-inf', now) end
if done > 0 then
  redis.call('INCRBY', 'hivepipe:done', done)
  if redis.call('EXISTS', worker) == 1 then
    redis.call('HINCRBY', worker, 'successful_job_count', done)
  end
end
return done
