-- Release the scheduler's lock if this scheduler holds it.
-- KEYS[1]  the lock
-- ARGV[1]  name of the scheduler
-- Returns  nothing

if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
