-- Mark ticks as finished. Each keeps its data and does not expire, because its next run reuses it.
-- KEYS       none
-- ARGV[1]    now in RQ's format
-- ARGV[2..]  for each tick: id, queue
-- Returns    nothing
-- Constants  EXECUTION

for i = 2, #ARGV, 2 do
  local id, q = ARGV[i], ARGV[i + 1]
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':' .. EXECUTION) == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'finished', 'ended_at', ARGV[1])
    redis.call('INCR', 'hivepipe:done')
  end
end
