-- Count one hook by event and duration, for hivepipe.queue.hook_times. A hook sends it before
-- `push`, after the guard's script if there is one.
-- KEYS       none: it writes hivepipe:hook_times
-- ARGV[1]    number of the arguments of the scripts before `push`
-- ARGV[n]    the last of these arguments: event and step of its duration, or '' to count nothing
-- Returns    nothing; `reply` is '' unless the guard's script has set it

local hook = ARGV[ARGV[1] + 1]
if hook ~= '' then redis.call('HINCRBY', 'hivepipe:hook_times', hook, 1) end
reply = reply or ''
