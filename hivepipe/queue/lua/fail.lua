-- Move jobs from the registry of running jobs to that of failed jobs, where a person retries or
-- discards them.
-- KEYS       none
-- ARGV[1]    key of RQ's hash of the worker
-- ARGV[2]    now in RQ's format
-- ARGV[3..]  for each job: id, queue, reason (packed as RQ packs it), data to keep, description to
--            keep
-- Returns    nothing
-- Constants  EXECUTION

local worker, at = ARGV[1], ARGV[2]
for i = 3, #ARGV, 5 do
  local id, q, reason, data, description = unpack(ARGV, i, i + 4)
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':' .. EXECUTION) == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'failed', 'ended_at', at, 'origin', q,
      'data', data, 'description', description, 'hp_redacted', 1)
    redis.call('PERSIST', 'rq:job:' .. id)
    redis.call('XADD', 'rq:results:' .. id, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', reason)
    redis.call('ZADD', 'rq:failed:' .. q, -1, id)
    if redis.call('EXISTS', worker) == 1 then
      redis.call('HINCRBY', worker, 'failed_job_count', 1)
    end
  end
end
