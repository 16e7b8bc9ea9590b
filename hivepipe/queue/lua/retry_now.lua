-- Make due now, in their order, the jobs that wait until the environment works again.
-- KEYS       none
-- ARGV[1..]  the queues
-- Returns    number of jobs

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local due = 0
for _, q in ipairs(ARGV) do
  local waiting, scheduled = 'hivepipe:held_up:' .. q, 'rq:scheduled:' .. q
  for i, id in ipairs(redis.call('ZRANGE', waiting, 0, -1)) do
    if redis.call('ZSCORE', scheduled, id) then
      redis.call('ZADD', scheduled, string.format('%.6f', now - 1 + i / 1000000), id)
      due = due + 1
    end
  end
  redis.call('DEL', waiting)
end
return due
