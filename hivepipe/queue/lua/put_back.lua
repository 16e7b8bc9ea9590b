-- Return a running job to the head of its queue, without counting an attempt.
-- KEYS       none
-- ARGV[1]    id
-- ARGV[2]    queue
-- Returns    nothing
-- Constants  EXECUTION

local id, q = ARGV[1], ARGV[2]
if redis.call('ZREM', 'rq:wip:' .. q, id .. ':' .. EXECUTION) == 1 then
  redis.call('HSET', 'rq:job:' .. id, 'status', 'queued')
  redis.call('LPUSH', 'rq:queue:' .. q, id)
end
