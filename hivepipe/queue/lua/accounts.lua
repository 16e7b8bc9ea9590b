-- Count the jobs in each state. It runs after `count_executed`, in the same EVAL. It is not a
-- transaction, because a Redis whose memory is full refuses a whole transaction, even its reads.
-- KEYS       none
-- ARGV[1..]  the queues
-- Returns    accepted, periodic, done, discarded, and then for each queue: waiting, running,
--            scheduled, failed

local found = {}
for _, name in ipairs({'accepted', 'periodic', 'done', 'discarded'}) do
  found[#found + 1] = tonumber(redis.call('GET', 'hivepipe:' .. name) or 0)
end
for _, q in ipairs(ARGV) do
  found[#found + 1] = redis.call('LLEN', 'rq:queue:' .. q)
  for _, state in ipairs({'wip', 'scheduled', 'failed'}) do
    found[#found + 1] = redis.call('ZCARD', 'rq:' .. state .. ':' .. q)
  end
end
return found
