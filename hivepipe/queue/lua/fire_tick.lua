-- Push a tick that is due, and set its next due time. A tick that is still waiting is not pushed
-- again, but gets the data of the newer slot. The version is written with the data: an older
-- scheduler may have made the hash, and an older writer must not claim data that it cannot read.
-- KEYS       none
-- ARGV[1]    id
-- ARGV[2]    queue
-- ARGV[3]    now, in seconds
-- ARGV[4]    next due time, in seconds
-- ARGV[5]    data
-- ARGV[6]    now in RQ's format
-- Returns    1 if the tick was fired, else 0
-- Constants  ENVELOPE_VERSION, EXECUTION, PERIODIC_KEY, RETRIES, RETRY_INTERVALS,
--            SCHEDULED_KEY

local id, q, now, due, data, at = unpack(ARGV)
local job, scheduled = 'rq:job:' .. id, SCHEDULED_KEY
local score = redis.call('ZSCORE', scheduled, id)
if not score or tonumber(score) > tonumber(now) then return 0 end
if redis.call('EXISTS', job) == 0 then
  redis.call('ZREM', scheduled, id)  -- the tick's hash is lost: the scheduler creates both again
  return 0
end
if redis.call('ZSCORE', 'rq:wip:' .. q, id .. ':' .. EXECUTION) then return 0 end
redis.call('HSET', job, 'status', 'queued', 'origin', q, 'enqueued_at', at, 'data', data,
  'hp', ENVELOPE_VERSION, 'retries_left', RETRIES,
  'retry_intervals', RETRY_INTERVALS)  -- rq-scheduler sets no intervals
-- If the last run failed in a stock worker, this run replaces it.
redis.call('INCRBY', 'hivepipe:discarded', redis.call('ZREM', 'rq:failed:' .. q, id))
redis.call('DEL', 'rq:results:' .. id)
redis.call('ZADD', scheduled, due, id)
if not redis.call('LPOS', 'rq:queue:' .. q, id) then
  redis.call('SADD', 'rq:queues', 'rq:queue:' .. q)
  redis.call('RPUSH', 'rq:queue:' .. q, id)
  redis.call('INCR', PERIODIC_KEY)
  if redis.call('LLEN', 'hivepipe:bell') == 0 then redis.call('RPUSH', 'hivepipe:bell', 1) end
end
return 1
