-- Take the scheduler's lock, or renew it.
-- KEYS[1]  the lock
-- ARGV[1]  name of the scheduler
-- ARGV[2]  seconds until the lock expires
-- Returns  1 if this scheduler holds it, 0 if another one does

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1
