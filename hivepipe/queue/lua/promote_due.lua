-- Put the retries that are due into their queues, as RQ's scheduler does if a worker runs it. Our
-- retries that are due later than any delay allows become due now: the clock was set back.
-- KEYS       none
-- ARGV[1..]  the queues
-- Returns    number of jobs
-- Constants  LONGEST_SECS

local now, promoted = tonumber(redis.call('TIME')[1]), 0
for _, q in ipairs(ARGV) do
  local scheduled = 'rq:scheduled:' .. q
  local far = now + LONGEST_SECS
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
