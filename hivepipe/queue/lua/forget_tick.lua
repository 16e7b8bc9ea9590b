-- Remove a periodic job. One that is being executed is removed the next time.
-- KEYS       none
-- ARGV[1]    id
-- ARGV[2]    queue
-- Returns    1 if it is gone now, 0 if it runs or was not there
-- Constants  SCHEDULED_KEY

local id, q = ARGV[1], ARGV[2]
redis.call('ZREM', SCHEDULED_KEY, id)
if redis.call('ZSCORE', 'rq:wip:' .. q, id .. ':hivepipe') then return 0 end
local waited = redis.call('LREM', 'rq:queue:' .. q, 0, id)
redis.call('INCRBY', 'hivepipe:discarded', waited)
return redis.call('DEL', 'rq:job:' .. id)
