-- Delete jobs in any state, with their results. Waiting, scheduled and failed jobs are counted as
-- discarded; finished jobs were counted before. No worker executes these jobs, so a remaining claim
-- belongs to a dead worker.
-- KEYS       none
-- ARGV[1..]  ids
-- Returns    number of jobs that existed
-- Constants  EXECUTED_KEY, QUEUES

local removed = 0
for _, id in ipairs(ARGV) do
  local job, live, done = 'rq:job:' .. id, 0, 0
  for _, q in ipairs(QUEUES) do
    live = live + redis.call('LREM', 'rq:queue:' .. q, 0, id)
      + redis.call('ZREM', 'rq:scheduled:' .. q, id) + redis.call('ZREM', 'rq:failed:' .. q, id)
    done = done + redis.call('ZREM', 'rq:finished:' .. q, id)
    for _, member in ipairs(redis.call('ZRANGE', 'rq:wip:' .. q, 0, -1)) do
      if member == id or string.sub(member, 1, #id + 1) == id .. ':' then
        live = live + redis.call('ZREM', 'rq:wip:' .. q, member)
      end
    end
  end
  local is_ours = redis.call('HEXISTS', job, 'hp') == 1
  local status = redis.call('HGET', job, 'status')
  if live > 0 or (done == 0 and status == 'queued') then
    if is_ours then redis.call('INCR', 'hivepipe:discarded') end
    redis.call('SREM', EXECUTED_KEY, id)
  end
  removed = removed + redis.call('DEL', job)
  redis.call('DEL', 'rq:results:' .. id)
end
return removed
