-- Record one event of a session in its lists of calls and its totals: hivepipe.guard.client. It
-- runs before `push`, in the same step. A duplicate event has a known id, and changes nothing.
-- KEYS       none: the keys are arguments; it also writes hivepipe:active
-- ARGV[1]    number of the arguments that follow
-- ARGV[2]    key of the conversation's calls, hivepipe:calls:...
-- ARGV[3]    key of the session's totals, hivepipe:activity:...
-- ARGV[4]    session
-- ARGV[5]    verb: call, result, batch, wait, prompt (of the user), notice (of Claude Code) or stop
-- ARGV[6]    id of the call; '' means the latest call with this pattern
-- ARGV[7]    pattern: hash of tool and arguments
-- ARGV[8]    kind of the call, one letter; with a result, it replaces the recorded kind OTHER
-- ARGV[9]    hash of the result
-- ARGV[10]   '1' if the call failed, '0' if not, '' if unknown
-- ARGV[11]   time of the event in ms
-- ARGV[12]   turn: '1' open, '0' closed, '' unknown
-- ARGV[13]   task
-- ARGV[14]   profile
-- ARGV[15]   what a person is asked for, until the next activity; '' for nothing
-- ARGV[16]   batch: of each call id, pattern, result and '1' if it was not run, separated by blanks
-- Returns    nothing; `reply` is '', or the calls up to this one to judge, separated by blanks
-- Constants  AHEAD_SECS, EDIT, INTERNAL, KEPT_CALLS, KEPT_SECS, OTHER, PROMPT, WINDOW

local calls, activity, session, verb, id, pattern, kind, result, failed, at, turn, task, profile,
  waits, batch = unpack(ARGV, 2, 16)
-- Calls of agents that Claude Code itself starts (/btw, a hook of type agent) are in no transcript.
local is_internal = string.find(calls, ':' .. INTERNAL, 1, true)
local function count(what)
  if not is_internal then redis.call('HINCRBY', activity, what, 1) end
end
local last_ms, last_task = unpack(redis.call('HMGET', activity, 'last_ms', 'task'))
if not last_ms then redis.call('HSET', activity, 'since_ms', at) end
-- Notes that were kept on disk arrive late. If the last time is in the future, the clock was set
-- back.
local last, ahead = tonumber(last_ms or 0), (tonumber(redis.call('TIME')[1]) + AHEAD_SECS) * 1000
local is_newest = last <= tonumber(at) or last > ahead
if is_newest then
  local now = {'last_ms', at, 'task', task, 'profile', profile, 'waits', waits}
  if turn ~= '' then now[#now + 1], now[#now + 2] = 'turn', turn end
  if verb ~= 'stop' and not is_internal then now[#now + 1], now[#now + 2] = 'work_ms', at end
  redis.call('HSET', activity, unpack(now))
end
redis.call('SADD', 'hivepipe:active', session)
if verb == 'prompt' or (is_newest and last_task and last_task ~= task) then
  redis.call('RPUSH', calls, PROMPT)
end
reply = ''
if verb == 'call' or verb == 'result' then
  local known = redis.call('LRANGE', calls, 0, -1)
  local place
  for i = #known, 1, -1 do
    local open = id == '' and #known[i] == 33 and string.sub(known[i], 17, 32) == pattern
    if open or string.sub(known[i], 1, 16) == id then place = i break end
  end
  local before = place and known[place] or ''
  if not place then
    place = #known + 1
    known[place] = (id == '' and string.rep('0', 16) or id) .. pattern .. kind .. result
    redis.call('RPUSH', calls, known[place])
    count('calls')
  elseif verb == 'result' and #before == 33 then
    local was = string.sub(before, 33)
    if was == OTHER then was = kind end
    -- A failed edit changed no file.
    if failed == '1' and was == EDIT then was = OTHER end
    redis.call('LSET', calls, place - 1, string.sub(before, 1, 32) .. was .. result)
  end
  if failed == '1' and #before <= 33 then count('failed') end
  if verb == 'call' then
    reply = table.concat(known, ' ', math.max(1, place - WINDOW), place)
  end
end
if verb == 'batch' then
  -- A call of the batch without a result event was refused, before or after its PreToolUse.
  local known, last = redis.call('LRANGE', calls, 0, -1), nil
  for call, call_pattern, outcome, not_run in string.gmatch(batch, '(%x+) (%x+) (%x+) (%d)') do
    local place
    for i = #known, 1, -1 do
      if string.sub(known[i], 1, 16) == call then place = i break end
    end
    local entry
    if not place and not_run == '1' then
      place = #known + 1
      entry = call .. call_pattern .. OTHER .. outcome
      redis.call('RPUSH', calls, entry)
      count('calls')
    elseif place and #known[place] == 33 then
      local was = string.sub(known[place], 33)
      if was == EDIT then was = OTHER end
      entry = string.sub(known[place], 1, 32) .. was .. outcome
      redis.call('LSET', calls, place - 1, entry)
    end
    if entry then
      known[place], last = entry, place
      count('failed')
    end
  end
  if last then reply = table.concat(known, ' ', math.max(1, last - WINDOW), last) end
end
redis.call('LTRIM', calls, -KEPT_CALLS, -1)
redis.call('EXPIRE', calls, KEPT_SECS)
