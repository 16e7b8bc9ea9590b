-- Tell whether to show a verdict, and record the verdict if so. This runs before it is shown.
-- A verdict without a subject is shown each time. A verdict about waiting is shown once per
-- session, and any other verdict once in QUIET_CALLS calls.
-- KEYS       none
-- ARGV[1]    number of the arguments that follow
-- ARGV[2]    key of the conversation's calls
-- ARGV[3]    key of the session's totals
-- ARGV[4]    session
-- ARGV[5]    id of the call
-- ARGV[6]    '1' if the call is denied, '0' for a warning
-- ARGV[7]    subject of the warning
-- Returns    nothing; `reply` is '1', or '0' if the verdict was shown before (then the script ends)
-- Constants  QUIET_CALLS, WAITING_SUBJECT

local calls, activity, session, id, denied, subject = unpack(ARGV, 2, 7)
reply = '0'
if redis.call('HGET', activity, 'judged') == id then return redis.status_reply(reply) end
if subject ~= '' then
  local now = tonumber(redis.call('HGET', activity, 'calls') or 0)
  local told = tonumber(redis.call('HGET', activity, 'told:' .. subject) or '')
  local enough = subject == WAITING_SUBJECT or (told and now - told < QUIET_CALLS)
  if told and enough then return redis.status_reply(reply) end
  redis.call('HSET', activity, 'told:' .. subject, now)
end
reply = '1'
redis.call('HSET', activity, 'judged', id)
redis.call('HINCRBY', activity, denied == '1' and 'denied' or 'warned', 1)
redis.call('SADD', 'hivepipe:active', session)
if denied == '1' then
  for i, call in ipairs(redis.call('LRANGE', calls, 0, -1)) do
    if string.sub(call, 1, 16) == id then
      redis.call('LSET', calls, i - 1, string.sub(call, 1, 33) .. '-')
    end
  end
end
