-- Return a running job to its queue if its stock worker is gone. A job without a worker's name is
-- being claimed at this moment, so it is returned only after its lease.
-- KEYS     none
-- ARGV[1]  queue
-- ARGV[2]  member of the registry of running jobs
-- ARGV[3]  id
-- ARGV[4]  1 if the lease has ended, else 0
-- Returns  1 if it was returned, else 0

local q, member, id, has_ended = unpack(ARGV)
local job = 'rq:job:' .. id
if redis.call('TYPE', job).ok ~= 'hash' then
  redis.call('ZREM', 'rq:wip:' .. q, member)
  return 0
end
local worker = redis.call('HGET', job, 'worker_name') or ''
if worker == '' and has_ended ~= '1' then return 0 end
if worker ~= '' and redis.call('EXISTS', 'rq:worker:' .. worker) == 1 then return 0 end
if redis.call('ZREM', 'rq:wip:' .. q, member) == 0 then return 0 end
redis.call('HSET', job, 'status', 'queued', 'origin', q)
redis.call('LPUSH', 'rq:queue:' .. q, id)
return 1
