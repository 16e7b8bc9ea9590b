-- Return the activity that is not stored yet, after removing the sessions whose activity was
-- stored. A session that has changed since then stays, so that several processes may store it.
-- KEYS       none: it reads hivepipe:activity:<session> and hivepipe:calls:<session>
-- ARGV[1..]  for each stored session: id, hash of its totals and calls when they were read
-- Returns    for each session: id, totals, calls and their hash
-- Constants  ACTIVE_KEY, TAKEN_KEY

-- Return totals and calls of a session, and their hash.
local function activity(session)
  local totals = redis.call('HGETALL', 'hivepipe:activity:' .. session)
  local calls = redis.call('LRANGE', 'hivepipe:calls:' .. session, 0, -1)
  local all = table.concat(totals, '\n') .. '\n' .. table.concat(calls, '\n')
  return totals, calls, redis.sha1hex(all)
end

for i = 1, #ARGV, 2 do
  local _, _, hash = activity(ARGV[i])
  if hash == ARGV[i + 1] then redis.call('SREM', ACTIVE_KEY, ARGV[i]) end
end
-- Older versions moved the sessions to another set before they stored them.
if redis.call('EXISTS', TAKEN_KEY) == 1 then
  redis.call('SUNIONSTORE', ACTIVE_KEY, ACTIVE_KEY, TAKEN_KEY)
  redis.call('DEL', TAKEN_KEY)
end
local found = {}
for _, session in ipairs(redis.call('SMEMBERS', ACTIVE_KEY)) do
  local totals, calls, hash = activity(session)
  if #totals > 0 then
    found[#found + 1] = {session, totals, calls, hash}
  else
    redis.call('SREM', ACTIVE_KEY, session)
  end
end
return found
