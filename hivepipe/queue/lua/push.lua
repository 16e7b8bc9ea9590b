-- Enqueue the jobs of one event, all or none. A hook sends it, perhaps behind a script of the
-- guard's. Redis runs a script atomically, and a full memory or disk refuses its first write. A job
-- is a duplicate if its id exists, or one of its twin ids (deduplication ids of the neighbouring
-- time window). Then the same event fired twice, or a hook that timed out had already handed it
-- over.
-- KEYS[1]    another counter than hivepipe:accepted, if given
-- ARGV[1]    number of arguments of the script in front: they follow it
-- ARGV[n..]  id, twin ids, queue, data, description and now in RQ's format of each job, one after
--            the other
-- Returns    `said` of the script in front as a status reply, else the number of new jobs
-- Constants  ENVELOPE_VERSION, FAILURE_TTL_SECS, RESULT_TTL_SECS, RETRIES, RETRY_INTERVALS,
--            TIMEOUT_SECS

local new = 0
for i = ARGV[1] + 2, #ARGV, 6 do
  local id, twins, queue, data, description, at = unpack(ARGV, i, i + 5)
  local known = redis.call('EXISTS', 'rq:job:' .. id) == 1
  for twin in string.gmatch(twins, '%S+') do
    known = known or redis.call('EXISTS', 'rq:job:' .. twin) == 1
  end
  if not known then
    redis.call('SADD', 'rq:queues', 'rq:queue:' .. queue)
    redis.call('HSET', 'rq:job:' .. id, 'created_at', at, 'data', data,
      'success_callback_name', '', 'failure_callback_name', '', 'stopped_callback_name', '',
      'started_at', '', 'ended_at', '', 'last_heartbeat', '', 'worker_name', '', 'group_id', '',
      'retries_left', RETRIES, 'retry_intervals', RETRY_INTERVALS,
      'origin', queue, 'description', description, 'enqueued_at', at,
      'timeout', TIMEOUT_SECS, 'result_ttl', RESULT_TTL_SECS,
      'failure_ttl', FAILURE_TTL_SECS, 'status', 'queued',
      'hp', ENVELOPE_VERSION)
    redis.call('RPUSH', 'rq:queue:' .. queue, id)
    new = new + 1
  end
end
if new > 0 then
  redis.call('INCRBY', KEYS[1] or 'hivepipe:accepted', new)
  if redis.call('LLEN', 'hivepipe:bell') == 0 then redis.call('RPUSH', 'hivepipe:bell', 1) end
end
return said and redis.status_reply(said) or new
