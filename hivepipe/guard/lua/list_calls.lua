-- List the calls of the conversation after the result of `note` or `verdict`, whose locals `calls`
-- and `activity` are the keys: hivepipe.guard.listed_calls. It runs after one of them, in the same
-- step.
-- KEYS       none
-- ARGV       none of its own
-- Returns    nothing; `reply` becomes its earlier value, the session's task and the calls, with
--            SEPARATOR between the three; blanks separate the calls
-- Constants  SEPARATOR

reply = reply .. SEPARATOR .. (redis.call('HGET', activity, 'task') or '')
  .. SEPARATOR .. table.concat(redis.call('LRANGE', calls, 0, -1), ' ')
