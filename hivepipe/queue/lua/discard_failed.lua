-- Delete failed jobs, and count them as discarded.
-- KEYS       none
-- ARGV[1..]  for each job: id, queue of its failed registry
-- Returns    number of jobs that still existed
-- Constants  EXECUTED_KEY

local discarded = 0
for i = 1, #ARGV, 2 do
  local id, q = ARGV[i], ARGV[i + 1]
  if redis.call('ZREM', 'rq:failed:' .. q, id) == 1 then
    redis.call('DEL', 'rq:job:' .. id, 'rq:results:' .. id)
    redis.call('SREM', EXECUTED_KEY, id)
    redis.call('INCR', 'hivepipe:discarded')
    discarded = discarded + 1
  end
end
return discarded
