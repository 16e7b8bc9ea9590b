-- Schedule jobs for another attempt: move them from the registry of running jobs to that of
-- scheduled jobs.
-- KEYS       none
-- ARGV[1]    1 if the environment failed, not the jobs (`retry_now` makes them due early), else 0
-- ARGV[2..]  for each job: id, queue, target queue, delay in seconds, attempts, failures that
--            the environment did not cause
-- Returns    nothing
-- Constants  EXECUTION, RETRIED_KEY

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
for i = 2, #ARGV, 6 do
  local id, q, target, delay, attempts, failures = unpack(ARGV, i, i + 5)
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':' .. EXECUTION) == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'scheduled', 'origin', target,
      'hp_attempts', attempts, 'hp_failures', failures)
    -- The due times differ by a microsecond, so that jobs that failed together keep their order.
    local due = string.format('%.6f', now + delay + i / 6000000)
    redis.call('ZADD', 'rq:scheduled:' .. target, due, id)
    if ARGV[1] == '1' then redis.call('ZADD', 'hivepipe:held_up:' .. target, due, id) end
    redis.call('INCR', RETRIED_KEY)
  end
end
