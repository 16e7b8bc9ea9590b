-- Note that a stock worker has executed a job. A job without our marker is not counted.
-- KEYS       none
-- ARGV[1]    id
-- Returns    nothing
-- Constants  EXECUTED_KEY

if redis.call('HEXISTS', 'rq:job:' .. ARGV[1], 'hp') == 1 then
  redis.call('SADD', EXECUTED_KEY, ARGV[1])
end
