-- Tell whether the hook may still wait for the reply. A hook that has stopped waiting has kept its
-- note on disk: a Redis that was suspended for a second or more must not execute it a second time.
-- A hook sends this before the guard's script, which is executed if `in_time` is true.
-- KEYS       none
-- ARGV[1]    number of the arguments of the scripts before `push`
-- ARGV[n]    the last but one of these arguments: the end of the wait in ms, or '' for no end
-- Returns    nothing; the local `in_time` is true or false

local end_ms, now = tonumber(ARGV[tonumber(ARGV[1])]), redis.call('TIME')
local in_time = not end_ms or now[1] * 1000 + now[2] / 1000 <= end_ms
