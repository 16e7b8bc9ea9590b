-- Return failed jobs to the queues of their original priority, with all attempts available again.
-- KEYS       none
-- ARGV[1]    now in RQ's format
-- ARGV[2..]  for each job: id, queue of its failed registry, target queue
-- Returns    number of jobs that were moved
-- Constants  RETRIES

local retried = 0
for i = 2, #ARGV, 3 do
  local id, q, target = unpack(ARGV, i, i + 2)
  local job = 'rq:job:' .. id
  if redis.call('EXISTS', job) == 1 and redis.call('ZREM', 'rq:failed:' .. q, id) == 1 then
    redis.call('HDEL', job, 'hp_attempts', 'hp_deaths', 'hp_failures')
    redis.call('HSET', job, 'status', 'queued', 'origin', target, 'enqueued_at', ARGV[1],
      'started_at', '', 'ended_at', '', 'worker_name', '', 'retries_left', RETRIES)
    redis.call('PERSIST', job)
    redis.call('DEL', 'rq:results:' .. id)  -- the reason of a failure does not expire
    redis.call('SADD', 'rq:queues', 'rq:queue:' .. target)
    redis.call('RPUSH', 'rq:queue:' .. target, id)
    retried = retried + 1
  end
end
if retried > 0 and redis.call('LLEN', 'hivepipe:bell') == 0 then
  redis.call('RPUSH', 'hivepipe:bell', 1)
end
return retried
