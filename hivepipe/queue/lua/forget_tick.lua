-- Delete a tick. A tick that is being executed is deleted by the next call.
-- KEYS       none
-- ARGV[1]    id
-- ARGV[2]    queue
-- Returns    1 if it was deleted, 0 if it is being executed or did not exist
-- Constants  EXECUTION, SCHEDULED_KEY

local id, q = ARGV[1], ARGV[2]
redis.call('ZREM', SCHEDULED_KEY, id)
if redis.call('ZSCORE', 'rq:wip:' .. q, id .. ':' .. EXECUTION) then return 0 end
local waited = redis.call('LREM', 'rq:queue:' .. q, 0, id)
redis.call('INCRBY', 'hivepipe:discarded', waited)
return redis.call('DEL', 'rq:job:' .. id)
