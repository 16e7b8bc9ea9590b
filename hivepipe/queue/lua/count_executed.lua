-- Count the noted jobs of stock workers that RQ has finished or expired, each exactly once. It runs
-- alone, or before `accounts`.
-- KEYS       none
-- ARGV       none
-- Returns    nothing
-- Constants  EXECUTED_KEY

local done = 0
for _, id in ipairs(redis.call('SMEMBERS', EXECUTED_KEY)) do
  local job = 'rq:job:' .. id
  local is_there = redis.call('TYPE', job).ok == 'hash'
  if not is_there or redis.call('HGET', job, 'status') == 'finished' then
    redis.call('SREM', EXECUTED_KEY, id)
    done = done + 1
  end
end
if done > 0 then redis.call('INCRBY', 'hivepipe:done', done) end
