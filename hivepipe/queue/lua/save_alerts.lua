-- Replace the state of the alerts. A Redis whose memory is full takes the new state too, because
-- the script has removed the old one first.
-- KEYS[1]  hivepipe:alerts: hivepipe.queue.alert_counts
-- ARGV     field and value, one after the other
-- Returns  nothing

redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV))
