-- List the calls of the conversation after the result of `note` or `verdict`, whose locals `calls`
-- and `activity` are the keys: hivepipe.guard.listed_calls. It runs after one of them, in the same
-- step.
-- KEYS       none
-- ARGV       none of its own
-- Returns    nothing; `said` is what it was, the session's task and the calls, separated by blanks,
--            with a separator between the three
-- Constants  SEPARATOR

said = said .. SEPARATOR .. (redis.call('HGET', activity, 'task') or '')
  .. SEPARATOR .. table.concat(redis.call('LRANGE', calls, 0, -1), ' ')
