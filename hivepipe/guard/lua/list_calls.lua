-- List the last calls of the conversation after the result of `note` or `verdict`, whose local
-- `calls` is the key: hivepipe.guard.listed_calls. It runs behind one of them, in the same step.
-- KEYS       none
-- ARGV       none of its own
-- Returns    nothing; `said` is what it was, the separator and the calls, separated by blanks
-- Constants  LISTED_BEHIND, WINDOW

said = said .. LISTED_BEHIND .. table.concat(redis.call('LRANGE', calls, -WINDOW, -1), ' ')
