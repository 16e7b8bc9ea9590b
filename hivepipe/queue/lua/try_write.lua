-- Try what jobs need, and change nothing. A replica refuses it, and so does an ACL without scripts
-- or without our keys.
-- KEYS       none
-- ARGV       none
-- Returns    0

return redis.call('DEL', 'hivepipe:none', 'rq:none')
