-- Mark periodic jobs as finished. Each stays for its next run: neither emptied nor expired.
-- KEYS       none
-- ARGV[1]    now in RQ's format
-- ARGV[2..]  id and queue of each tick, one after the other
-- Returns    nothing

for i = 2, #ARGV, 2 do
  local id, q = ARGV[i], ARGV[i + 1]
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':hivepipe') == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'finished', 'ended_at', ARGV[1])
    redis.call('INCR', 'hivepipe:done')
  end
end
