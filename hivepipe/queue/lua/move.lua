-- Move running jobs to another queue, at once or after a delay, under the same id. It is one
-- script, so that a job is always in exactly one list.
-- KEYS       none
-- ARGV[1..]  for each job: id, queue, target queue, delay in seconds
-- Returns    nothing
-- Constants  EXECUTION

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
for i = 1, #ARGV, 4 do
  local id, q, target, delay = unpack(ARGV, i, i + 3)
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':' .. EXECUTION) == 1 then
    local job, bell = 'rq:job:' .. id, 'hivepipe:bell:' .. target
    redis.call('HDEL', job, 'hp_attempts', 'hp_deaths', 'hp_failures')
    redis.call('SADD', 'rq:queues', 'rq:queue:' .. target)
    if tonumber(delay) > 0 then
      redis.call('HSET', job, 'status', 'scheduled', 'origin', target)
      redis.call('ZADD', 'rq:scheduled:' .. target, string.format('%.6f', now + delay), id)
    else
      redis.call('HSET', job, 'status', 'queued', 'origin', target)
      redis.call('RPUSH', 'rq:queue:' .. target, id)
    end
    if redis.call('LLEN', bell) == 0 then redis.call('RPUSH', bell, 1) end
  end
end
