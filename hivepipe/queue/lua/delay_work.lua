-- Schedule the jobs among those just enqueued that have a delay, and wake the workers of their
-- queues.
-- KEYS       none
-- ARGV[1..]  for each job: id, queue, delay in seconds
-- Returns    nothing
-- Constants  none

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
for i = 1, #ARGV, 3 do
  local id, q, delay = unpack(ARGV, i, i + 2)
  local job, bell = 'rq:job:' .. id, 'hivepipe:bell:' .. q
  if tonumber(delay) > 0 and redis.call('LREM', 'rq:queue:' .. q, -1, id) == 1 then
    redis.call('HSET', job, 'status', 'scheduled')
    redis.call('ZADD', 'rq:scheduled:' .. q, string.format('%.6f', now + delay), id)
  end
  if redis.call('LLEN', bell) == 0 then redis.call('RPUSH', bell, 1) end
end
