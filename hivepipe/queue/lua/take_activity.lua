-- Take the sessions with new activity, and again those that a killed process had taken.
-- KEYS       none
-- ARGV       none
-- Returns    the ids of the sessions
-- Constants  ACTIVE_KEY, TAKEN_KEY

if redis.call('EXISTS', ACTIVE_KEY, TAKEN_KEY) == 0 then return {} end
redis.call('SUNIONSTORE', TAKEN_KEY, TAKEN_KEY, ACTIVE_KEY)
redis.call('DEL', ACTIVE_KEY)
return redis.call('SMEMBERS', TAKEN_KEY)
