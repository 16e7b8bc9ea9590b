-- Return the jobs of a dead worker to the head of their queues, the oldest first. A job that has
-- killed its worker too often fails. Retries delayed by a clock that was set back become due.
-- KEYS       none
-- ARGV[1]    id of the job that was being executed, or ''
-- ARGV[2]    number of worker deaths after which a job fails
-- ARGV[3]    reason of that failure (packed as RQ packs it)
-- ARGV[4]    now in RQ's format
-- ARGV[5..]  the queues
-- Returns    number of jobs that were returned or failed
-- Constants  EXECUTION, LONGEST_SECS

local blamed, most, reason, at = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local recovered, now = 0, tonumber(redis.call('TIME')[1])
for _, q in ipairs({unpack(ARGV, 5)}) do
  local scheduled, far = 'rq:scheduled:' .. q, now + LONGEST_SECS
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', scheduled, far, '+inf')) do
    redis.call('ZADD', scheduled, now, id)
  end
  local held = {}
  for _, member in ipairs(redis.call('ZRANGE', 'rq:wip:' .. q, 0, -1)) do
    local id = string.match(member, '^(.*):' .. EXECUTION .. '$')
    if id then
      local since = redis.call('HGET', 'rq:job:' .. id, 'enqueued_at') or ''
      held[#held + 1] = {since, id, member}
    end
  end
  -- The oldest job is pushed last, so that it is the first of its queue.
  table.sort(held, function(a, b) return a[1] > b[1] end)
  for _, job_held in ipairs(held) do
    local id, member = job_held[2], job_held[3]
    redis.call('ZREM', 'rq:wip:' .. q, member)
    local job = 'rq:job:' .. id
    if redis.call('EXISTS', job) == 1 then
      recovered = recovered + 1
      if id == blamed and redis.call('HINCRBY', job, 'hp_deaths', 1) >= most then
        redis.call('HSET', job, 'status', 'failed', 'ended_at', at)
        redis.call('XADD', 'rq:results:' .. id, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', reason)
        redis.call('ZADD', 'rq:failed:' .. q, -1, id)
      else
        redis.call('HSET', job, 'status', 'queued')
        redis.call('LPUSH', 'rq:queue:' .. q, id)
      end
    end
  end
end
return recovered
