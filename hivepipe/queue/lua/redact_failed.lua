-- Replace the data and the description of a failed job by redacted ones.
-- KEYS     none
-- ARGV[1]  queue
-- ARGV[2]  id
-- ARGV[3]  data
-- ARGV[4]  description
-- Returns  nothing

local q, id, data, description = unpack(ARGV)
if redis.call('ZSCORE', 'rq:failed:' .. q, id) then
  redis.call('HSET', 'rq:job:' .. id, 'data', data, 'description', description, 'hp_redacted', 1)
end
