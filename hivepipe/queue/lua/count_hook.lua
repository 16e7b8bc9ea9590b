-- Count one hook by event and time: hivepipe.queue.hook_times. A hook sends it in front of `push`,
-- behind a script of the guard's if there is one.
-- KEYS       none
-- ARGV[1]    number of the arguments of the scripts in front of `push`
-- ARGV[n]    the last of them: event and step of time; '' counts nothing
-- Returns    nothing

local hook = ARGV[ARGV[1] + 1]
if hook ~= '' then redis.call('HINCRBY', 'hivepipe:hook_times', hook, 1) end
