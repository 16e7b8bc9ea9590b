-- Schedule jobs for another attempt: from the registry of running jobs to that of scheduled ones.
-- KEYS       none
-- ARGV[1]    1 if the environment failed, not the jobs: `hurry` makes them due early; else 0
-- ARGV[2..]  id, queue, target queue, delay in seconds, attempts, and attempts that were not failed
--            by the environment of each job, one after the other
-- Returns    nothing
-- Constants  EXECUTION, RETRIED_KEY

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
for i = 2, #ARGV, 6 do
  local id, q, target, delay, attempts, failures = unpack(ARGV, i, i + 5)
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':' .. EXECUTION) == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'scheduled', 'origin', target,
      'hp_attempts', attempts, 'hp_failures', failures)
    -- A microsecond apart: what failed together comes back in its order.
    local due = string.format('%.6f', now + delay + i / 6000000)
    redis.call('ZADD', 'rq:scheduled:' .. target, due, id)
    if ARGV[1] == '1' then redis.call('ZADD', 'hivepipe:held_up:' .. target, due, id) end
    redis.call('INCR', RETRIED_KEY)
  end
end
