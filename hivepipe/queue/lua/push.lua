-- Enqueue the jobs of one event, all or none: Redis runs a script atomically, and with a full
-- memory or disk it refuses the first write. A hook sends it, after the guard's script if there is
-- one. A job is a duplicate if its id or one of its twin ids exists (the ids of the neighbouring
-- time windows). Then the same event fired twice, or a hook enqueued the job before it timed out.
-- KEYS[1]    the counter to increment instead of hivepipe:accepted (optional)
-- ARGV[1]    number of arguments of the scripts before this one; they come next
-- ARGV[n..]  for each job: id, twin ids, queue, data, description, now in RQ's format
-- Returns    `reply` of a script before this one as a status reply, else the number of new jobs
-- Constants  ENVELOPE_VERSION, FAILURE_TTL_SECS, RESULT_TTL_SECS, RETRIES, RETRY_INTERVALS,
--            TIMEOUT_SECS

local new = 0
for i = ARGV[1] + 2, #ARGV, 6 do
  local id, twins, queue, data, description, at = unpack(ARGV, i, i + 5)
  local known = redis.call('EXISTS', 'rq:job:' .. id) == 1
  for twin in string.gmatch(twins, '%S+') do
    known = known or redis.call('EXISTS', 'rq:job:' .. twin) == 1
  end
  -- Written even for a duplicate, because a full disk refuses it: then the known job may be in
  -- memory only, and a spool file with it must stay.
  redis.call('SADD', 'rq:queues', 'rq:queue:' .. queue)
  if not known then
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
return reply and redis.status_reply(reply) or new
