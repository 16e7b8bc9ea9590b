-- Discard a failed periodic job, because a later run of the same operation has replaced it.
-- KEYS       none
-- ARGV[1]    queue
-- ARGV[2]    id
-- Returns    0 if the job is not in the failed registry, else a positive number
-- Constants  EXECUTED_KEY

if redis.call('ZREM', 'rq:failed:' .. ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('DEL', 'rq:job:' .. ARGV[2], 'rq:results:' .. ARGV[2])
redis.call('SREM', EXECUTED_KEY, ARGV[2])
return redis.call('INCR', 'hivepipe:discarded')
