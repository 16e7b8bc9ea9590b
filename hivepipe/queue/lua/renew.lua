-- Renew the lease of a long-running job.
-- KEYS       none
-- ARGV[1]    id
-- ARGV[2]    queue
-- ARGV[3]    seconds until the lease ends
-- ARGV[4]    now in RQ's format
-- Returns    nothing
-- Constants  EXECUTION

local id, q, lease, at = unpack(ARGV)
local ends = tonumber(redis.call('TIME')[1]) + lease
redis.call('ZADD', 'rq:wip:' .. q, 'XX', ends, id .. ':' .. EXECUTION)
redis.call('HSET', 'rq:job:' .. id, 'last_heartbeat', at)
