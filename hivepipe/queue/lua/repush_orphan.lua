-- Requeue a job whose status is `queued` but that is in no list.
-- KEYS     none
-- ARGV[1]  id
-- Returns  1 if it was requeued, else 0

local id = ARGV[1]
local job = 'rq:job:' .. id
local status, origin = unpack(redis.call('HMGET', job, 'status', 'origin'))
if status ~= 'queued' or not origin then return 0 end
if redis.call('LPOS', 'rq:queue:' .. origin, id) then return 0 end
if redis.call('ZSCORE', 'rq:scheduled:' .. origin, id) then return 0 end
redis.call('RPUSH', 'rq:queue:' .. origin, id)
return 1
