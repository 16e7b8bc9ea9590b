-- Append the conversation's calls to the result of `note` or `verdict`, for
-- hivepipe.guard.listed_calls. This script runs in the same step as the other, and uses its local
-- variables `calls` and `activity` as keys.
-- KEYS       none
-- ARGV       none of its own
-- Returns    nothing; `reply` becomes its earlier value, the session's task and the calls, with
--            SEPARATOR between the three; blanks separate the calls
-- Constants  SEPARATOR

reply = reply .. SEPARATOR .. (redis.call('HGET', activity, 'task') or '')
  .. SEPARATOR .. table.concat(redis.call('LRANGE', calls, 0, -1), ' ')
