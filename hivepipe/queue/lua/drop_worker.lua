-- Remove the registration of a dead worker.
-- KEYS       none
-- ARGV[1]    key of RQ's hash of the worker
-- ARGV[2..]  names of its queues
-- Returns    1 if its hash existed, else 0

redis.call('SREM', 'rq:workers', ARGV[1])
for i = 2, #ARGV do redis.call('SREM', 'rq:workers:' .. ARGV[i], ARGV[1]) end
return redis.call('DEL', ARGV[1])
