"""The Lua scripts that claim and finish jobs. Redis runs each one atomically, so that a job is
always in a queue or a registry.

rq:queue:<q>        list   waiting
rq:wip:<q>          zset   running; member <job>:<execution>, score = end of the lease
rq:scheduled:<q>    zset   retrying; score = due time (fractions of a second, unlike RQ's own)
rq:finished:<q>, rq:failed:<q>   zset   finished, failed
hivepipe:bell       list   a hook pushes to it after an enqueue; the writer blocks on it
hivepipe:bell:<q>   list   the same for the workers of slow and llm; the writer pushes to it
hivepipe:held_up:<q> zset  retrying because the environment failed: due when it works again
hivepipe:clock      hash   first queue of a worker -> Redis' time of one of its last claims
hivepipe:set_aside  list   ids from a queue whose key is not a job hash
hivepipe:operations hash   jobs done, by operation
hivepipe:trouble    hash   since when the store does not answer, and why
hivepipe:newer      int    envelope version of jobs that need a later hivepipe
hivepipe:accepted, :periodic, :done, :discarded   int   counters: jobs of events and periodic
                           jobs, counted when they enter; both, when they leave
"""

from hivepipe.queue.stock_jobs import EXECUTED_KEY

EXECUTION = "hivepipe"  # RQ's execution id; one claiming worker per queue, so one is enough
# Newest envelope version seen in a queue that this worker cannot decode
NEWER_KEY = "hivepipe:newer"
NEWER_SECS = 60
OPERATIONS_KEY = "hivepipe:operations"  # hash: jobs done, by operation
RETRIED_KEY = "hivepipe:retried"  # number of attempts that were scheduled for another try
# No retry is delayed longer; a later due time means that the clock was set back
LONGEST_SECS = 4000
CLOCK_KEY = "hivepipe:clock"
CLOCK_EVERY_SECS = 5

# ARGV: number of jobs, lease, worker, now in RQ's format, our version, 1 if the server is shared;
# then the queues
CLAIM = f"""
local places, lease, worker, at, version =
  tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local shared, queues = ARGV[6] == '1', {{unpack(ARGV, 7)}}
local found, due, newer, foreign, alone = {{}}, -1, 0, 0, false
local seen = {{}}  -- of others' jobs: a queue that is looked at twice has each of them once

-- What is due moves back with a clock that is set back. A full Redis takes none of these writes.
local last = tonumber(redis.call('HGET', '{CLOCK_KEY}', queues[1]) or '') or 0
local back = last - now
if back > 1 then
  for _, q in ipairs(queues) do
    for _, key in ipairs({{'rq:scheduled:' .. q, 'rq:wip:' .. q, 'hivepipe:held_up:' .. q}}) do
      local found = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
      for i = 1, #found, 2 do
        redis.pcall('ZADD', key, string.format('%.6f', found[i + 1] - back), found[i])
      end
    end
  end
end
if back > 0 or -back >= {CLOCK_EVERY_SECS} then
  redis.pcall('HSET', '{CLOCK_KEY}', queues[1], string.format('%.3f', now))
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

local function take(q, most)
  local key, left = 'rq:queue:' .. q, {{}}
  while most > 0 and not alone do
    local ids = redis.call('LRANGE', key, 0, most - 1)
    if #ids == 0 then break end
    redis.call('LTRIM', key, #ids, -1)
    for i, id in ipairs(ids) do
      local job = 'rq:job:' .. id
      local is_job = redis.call('TYPE', job).ok == 'hash' and string.match(id, '^[ -~]+$')
      local h = {{}}
      if is_job then
        h = redis.call('HMGET', job, 'hp', 'data', 'hp_attempts', 'hp_deaths')
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
        redis.call('ZADD', 'rq:wip:' .. q, math.floor(now) + lease, id .. ':{EXECUTION}')
        redis.call('HSET', job, 'status', 'started', 'started_at', at, 'last_heartbeat', at,
          'worker_name', worker)
        redis.call('PERSIST', job)
        -- Not handed over by a hook: it comes into the accounts here, however often it is claimed.
        if not ours and redis.call('HSETNX', job, 'hp_accepted', 1) == 1 then
          redis.call('INCR', 'hivepipe:accepted')
        end
        local attempts = math.max(0, math.min(math.floor(tonumber(h[3] or '') or 0), 1000))
        found[#found + 1] = {{id, q, h[2] or '', attempts, ours and 1 or 0}}
        most = most - 1
        alone = suspect
      elseif redis.call('EXISTS', job) == 1 then
        redis.call('RPUSH', 'hivepipe:set_aside', id)  -- no job of anybody's: kept, not touched
      end
    end
  end
  for k = #left, 1, -1 do redis.call('LPUSH', key, left[k]) end
end

-- Strict order, but a tenth of a large claim, at least one place, goes to lower queues that wait.
local waiting = {{}}
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
if newer > 0 then redis.call('SET', '{NEWER_KEY}', newer, 'EX', {NEWER_SECS}) end
return {{found, tostring(due), newer, foreign, tostring(back > 1 and back or 0)}}
"""

# ARGV: worker key, now in RQ's format, seconds to keep, emptied data; then id, queue, operation
ACKNOWLEDGE = f"""
local worker, at, keep, emptied = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now = tonumber(redis.call('TIME')[1])
local done, executed, queues = 0, redis.call('EXISTS', '{EXECUTED_KEY}') == 1, {{}}
for i = 5, #ARGV, 3 do
  local id, q, operation = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  -- Not there: the lease ran out and somebody put the job back; it will come again, and do nothing.
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':{EXECUTION}') == 1 then
    local job = 'rq:job:' .. id
    redis.call('HSET', job, 'status', 'finished', 'ended_at', at, 'data', emptied,
      'description', operation)
    redis.call('EXPIRE', job, keep)
    redis.call('ZADD', 'rq:finished:' .. q, now + keep, id)
    queues[q] = true
    if executed then redis.call('SREM', '{EXECUTED_KEY}', id) end  -- a stock worker died of it
    redis.call('HINCRBY', '{OPERATIONS_KEY}', operation, 1)
    done = done + 1
  end
end
-- RQ forgets what has expired when somebody asks for the list, which nobody may ever do.
for q in pairs(queues) do redis.call('ZREMRANGEBYSCORE', 'rq:finished:' .. q, '-inf', now) end
if done > 0 then
  redis.call('INCRBY', 'hivepipe:done', done)
  if redis.call('EXISTS', worker) == 1 then
    redis.call('HINCRBY', worker, 'successful_job_count', done)
  end
end
return done
"""

# ARGV: 1 if the environment failed; then id, queue, target queue, delay, attempts for each job
RETRY = f"""
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
for i = 2, #ARGV, 5 do
  local id, q, target, delay, attempts = unpack(ARGV, i, i + 4)
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':{EXECUTION}') == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'scheduled', 'origin', target,
      'hp_attempts', attempts)
    -- A microsecond apart: what failed together comes back in its order.
    local due = string.format('%.6f', now + delay + i / 5000000)
    redis.call('ZADD', 'rq:scheduled:' .. target, due, id)
    if ARGV[1] == '1' then redis.call('ZADD', 'hivepipe:held_up:' .. target, due, id) end
    redis.call('INCR', '{RETRIED_KEY}')
  end
end
"""

# Jobs that wait for the environment become due now, in their order. ARGV: the queues
HURRY = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local hurried = 0
for _, q in ipairs(ARGV) do
  local waiting, scheduled = 'hivepipe:held_up:' .. q, 'rq:scheduled:' .. q
  for i, id in ipairs(redis.call('ZRANGE', waiting, 0, -1)) do
    if redis.call('ZSCORE', scheduled, id) then
      redis.call('ZADD', scheduled, string.format('%.6f', now - 1 + i / 1000000), id)
      hurried = hurried + 1
    end
  end
  redis.call('DEL', waiting)
end
return hurried
"""

# ARGV: worker key, now in RQ's format; then id, queue, reason (packed as RQ packs it), data,
# description for each job
BURY = f"""
local worker, at = ARGV[1], ARGV[2]
for i = 3, #ARGV, 5 do
  local id, q, reason, data, description = unpack(ARGV, i, i + 4)
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':{EXECUTION}') == 1 then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'failed', 'ended_at', at, 'origin', q,
      'data', data, 'description', description, 'hp_redacted', 1)
    redis.call('PERSIST', 'rq:job:' .. id)
    redis.call('XADD', 'rq:results:' .. id, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', reason)
    redis.call('ZADD', 'rq:failed:' .. q, -1, id)
    if redis.call('EXISTS', worker) == 1 then
      redis.call('HINCRBY', worker, 'failed_job_count', 1)
    end
  end
end
"""

# Move jobs to another queue, at once or after a delay, under the same id. One script does it, so
# that a job is always in exactly one list. ARGV: id, queue, target, delay for each job
HAND_ON = f"""
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
for i = 1, #ARGV, 4 do
  local id, q, target, delay = unpack(ARGV, i, i + 3)
  if redis.call('ZREM', 'rq:wip:' .. q, id .. ':{EXECUTION}') == 1 then
    local job, bell = 'rq:job:' .. id, 'hivepipe:bell:' .. target
    redis.call('HDEL', job, 'hp_attempts', 'hp_deaths')
    redis.call('SADD', 'rq:queues', 'rq:queue:' .. target)
    if tonumber(delay) > 0 then
      redis.call('HSET', job, 'status', 'scheduled', 'origin', target)
      redis.call('ZADD', 'rq:scheduled:' .. target, string.format('%.6f', now + delay), id)
    else
      redis.call('HSET', job, 'status', 'queued', 'origin', target)
      redis.call('RPUSH', 'rq:queue:' .. target, id)
    end
    if redis.call('LLEN', bell) == 0 then redis.call('RPUSH', bell, 1) end
  end
end
"""

# Return a job to the head of its queue, as if it had not been claimed. ARGV: id, queue
PUT_BACK = f"""
local id, q = ARGV[1], ARGV[2]
if redis.call('ZREM', 'rq:wip:' .. q, id .. ':{EXECUTION}') == 1 then
  redis.call('HSET', 'rq:job:' .. id, 'status', 'queued')
  redis.call('LPUSH', 'rq:queue:' .. q, id)
end
"""

# Renew the lease of a long job. ARGV: id, queue, lease, now in RQ's format
RENEW = f"""
local id, q, lease, at = unpack(ARGV)
local ends = tonumber(redis.call('TIME')[1]) + lease
redis.call('ZADD', 'rq:wip:' .. q, 'XX', ends, id .. ':{EXECUTION}')
redis.call('HSET', 'rq:job:' .. id, 'last_heartbeat', at)
"""

# Return the jobs of a dead worker to the head of their queues. Jobs that a clock set back has
# delayed become due. ARGV: the job that was being executed (or ''), number of deaths that fails a
# job, reason, now in RQ's format; then the queues
RECOVER = f"""
local blamed, most, reason, at = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local recovered, now = 0, tonumber(redis.call('TIME')[1])
for _, q in ipairs({{unpack(ARGV, 5)}}) do
  local scheduled, far = 'rq:scheduled:' .. q, now + {LONGEST_SECS}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', scheduled, far, '+inf')) do
    redis.call('ZADD', scheduled, now, id)
  end
  local held = {{}}
  for _, member in ipairs(redis.call('ZRANGE', 'rq:wip:' .. q, 0, -1)) do
    local id = string.match(member, '^(.*):{EXECUTION}$')
    if id then
      local since = redis.call('HGET', 'rq:job:' .. id, 'enqueued_at') or ''
      held[#held + 1] = {{since, id, member}}
    end
  end
  table.sort(held, function(a, b) return a[1] > b[1] end)  -- the oldest is pushed last: first again
  for _, job_held in ipairs(held) do
    local id, member = job_held[2], job_held[3]
    redis.call('ZREM', 'rq:wip:' .. q, member)
    local job = 'rq:job:' .. id
    if redis.call('EXISTS', job) == 1 then
      recovered = recovered + 1
      if id == blamed and redis.call('HINCRBY', job, 'hp_deaths', 1) >= most then
        redis.call('HSET', job, 'status', 'failed', 'ended_at', at)
        redis.call('XADD', 'rq:results:' .. id, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', reason)
        redis.call('ZADD', 'rq:failed:' .. q, -1, id)
      else
        redis.call('HSET', job, 'status', 'queued')
        redis.call('LPUSH', 'rq:queue:' .. q, id)
      end
    end
  end
end
return recovered
"""
