-- Take the next jobs from the queues of one worker, and put each into its registry of running jobs.
-- Retries that are due return to their queues first. If the clock was set back, due times and
-- leases are moved back by the same amount. A job that killed its worker is taken alone. Jobs of a
-- newer version stay in their queues, and so do other programs' jobs on a shared server.
-- KEYS       none: the keys follow from the queues, which are arguments
-- ARGV[1]    number of jobs to take at most
-- ARGV[2]    seconds until the lease ends
-- ARGV[3]    name of the worker
-- ARGV[4]    now in RQ's format
-- ARGV[5]    newest envelope version that the worker can decode
-- ARGV[6]    1 if other programs use the server too, else 0
-- ARGV[7..]  the queues, most urgent first
-- Returns    {jobs, seconds until the first retry is due or -1 if there is none, newest version
--            that was left or 0, number of other programs' jobs, seconds by which the clock was
--            set back}; each job is {id, queue, data, attempts, 1 if it has our marker else 0,
--            failures that the environment did not cause}
-- Constants  CLOCK_EVERY_SECS, CLOCK_KEY, EXECUTION, NEWER_KEY, NEWER_SECS

local places, lease, worker, at, version =
  tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local shared, queues = ARGV[6] == '1', {unpack(ARGV, 7)}
local found, due, newer, foreign, alone = {}, -1, 0, 0, false
local seen = {}  -- other programs' jobs: a queue may be read twice, but each job counts once

-- `pcall`, because a Redis whose memory is full refuses these writes, and the claim must go on.
local last = tonumber(redis.call('HGET', CLOCK_KEY, queues[1]) or '') or 0
local back = last - now
if back > 1 then
  for _, q in ipairs(queues) do
    for _, key in ipairs({'rq:scheduled:' .. q, 'rq:wip:' .. q, 'hivepipe:held_up:' .. q}) do
      local found = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
      for i = 1, #found, 2 do
        redis.pcall('ZADD', key, string.format('%.6f', found[i + 1] - back), found[i])
      end
    end
  end
end
if back > 0 or -back >= CLOCK_EVERY_SECS then
  redis.pcall('HSET', CLOCK_KEY, queues[1], string.format('%.3f', now))
end

for _, q in ipairs(queues) do
  local scheduled = 'rq:scheduled:' .. q
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', scheduled, '-inf', now, 'LIMIT', 0, 500)) do
    redis.call('ZREM', scheduled, id)
    if redis.call('TYPE', 'rq:job:' .. id).ok == 'hash' then
      redis.call('HSET', 'rq:job:' .. id, 'status', 'queued', 'origin', q)
      redis.call('RPUSH', 'rq:queue:' .. q, id)
    end
  end
  local first = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
  if first and (due < 0 or first - now < due) then due = math.max(first - now, 0) end
end

-- Return the count in a field, which may hold any value, as a number from 0 to 1000.
local function count(field)
  return math.max(0, math.min(math.floor(tonumber(field or '') or 0), 1000))
end

local function take(q, most)
  local key, left = 'rq:queue:' .. q, {}
  while most > 0 and not alone do
    local ids = redis.call('LRANGE', key, 0, most - 1)
    if #ids == 0 then break end
    redis.call('LTRIM', key, #ids, -1)
    for i, id in ipairs(ids) do
      local job = 'rq:job:' .. id
      local is_job = redis.call('TYPE', job).ok == 'hash' and string.match(id, '^[ -~]+$')
      local h = {}
      if is_job then
        h = redis.call('HMGET', job, 'hp', 'data', 'hp_attempts', 'hp_deaths', 'hp_failures')
      end
      local ours = tonumber(h[1] or '')
      local suspect = (tonumber(h[4] or '') or 0) > 0
      if alone or (suspect and #found > 0) then
        -- A job that killed its worker runs alone: this claim ends before it.
        for k = #ids, i, -1 do redis.call('LPUSH', key, ids[k]) end
        alone = true
        break
      elseif ours and ours > version then
        newer = math.max(newer, ours)
        left[#left + 1] = id
      elseif shared and not ours and redis.call('EXISTS', job) == 1 then
        if not seen[id] then foreign, seen[id] = foreign + 1, true end
        left[#left + 1] = id
      elseif is_job then
        redis.call('ZADD', 'rq:wip:' .. q, math.floor(now) + lease, id .. ':' .. EXECUTION)
        redis.call('HSET', job, 'status', 'started', 'started_at', at, 'last_heartbeat', at,
          'worker_name', worker)
        redis.call('PERSIST', job)
        -- No hook enqueued it, so it is counted as accepted at its first claim.
        if not ours and redis.call('HSETNX', job, 'hp_accepted', 1) == 1 then
          redis.call('INCR', 'hivepipe:accepted')
        end
        found[#found + 1] = {id, q, h[2] or '', count(h[3]), ours and 1 or 0, count(h[5])}
        most = most - 1
        alone = suspect
      elseif redis.call('EXISTS', job) == 1 then
        redis.call('RPUSH', 'hivepipe:set_aside', id)  -- not a job hash: it is kept unchanged
      end
    end
  end
  for k = #left, 1, -1 do redis.call('LPUSH', key, left[k]) end
end

-- The order of the queues is strict, except that a tenth of a large claim, at least one place, goes
-- to the lower queues with waiting jobs.
local waiting = {}
for _, q in ipairs(queues) do
  if redis.call('LLEN', 'rq:queue:' .. q) > 0 then waiting[#waiting + 1] = q end
end
if places > 10 and #waiting > 1 then
  local share = math.max(1, math.floor(places / 10))
  local strict = places - share
  for _, q in ipairs(waiting) do take(q, strict - #found) end
  for i = #waiting, 2, -1 do take(waiting[i], places - #found) end
end
for _, q in ipairs(waiting) do take(q, places - #found) end
if newer > 0 then redis.call('SET', NEWER_KEY, newer, 'EX', NEWER_SECS) end
return {found, tostring(due), newer, foreign, tostring(back > 1 and back or 0)}
