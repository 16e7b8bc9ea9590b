"""The scripts that claim and finish jobs, and the keys that they use.

Redis runs each script atomically, so that a job is always in a queue or a registry.

rq:queue:<q>        list   waiting
rq:wip:<q>          zset   running; member <job>:<execution>, score = end of the lease
rq:scheduled:<q>    zset   retrying; score = due time (fractions of a second, unlike RQ's own)
rq:finished:<q>, rq:failed:<q>   zset   finished, failed
hivepipe:bell       list   a hook pushes to it after an enqueue; the writer blocks on it
hivepipe:bell:<q>   list   the same for the workers of slow and llm; the writer pushes to it
hivepipe:held_up:<q> zset  retrying because the environment failed; due when it works again
hivepipe:clock      hash   first queue of a worker -> Redis' time of one of its last claims
hivepipe:set_aside  list   ids from a queue whose key is not a job hash
hivepipe:operations hash   jobs done, by operation
hivepipe:trouble    hash   since when the store cannot be written, and the reason
hivepipe:newer      int    envelope version of jobs that need a newer hivepipe
hivepipe:accepted, :periodic   int   counters of enqueued jobs: of events, of the schedule
hivepipe:done, :discarded      int   counters of finished and of discarded jobs
"""

from hivepipe.queue.scripts import script
from hivepipe.queue.stock_jobs import EXECUTED_KEY

EXECUTION = "hivepipe"  # RQ's execution id; a constant, because each queue has one claiming worker
# Newest envelope version seen in a queue that this worker cannot decode
NEWER_KEY = "hivepipe:newer"
NEWER_SECS = 60
OPERATIONS_KEY = "hivepipe:operations"  # hash: jobs done, by operation
RETRIED_KEY = "hivepipe:retried"  # number of retries ever scheduled
# No retry has a longer delay; a later due time means that the clock was set back
LONGEST_SECS = 4000
CLOCK_KEY = "hivepipe:clock"
CLOCK_EVERY_SECS = 5

SCRIPTS = {
    "claim": script(
        "claim",
        CLOCK_EVERY_SECS=CLOCK_EVERY_SECS,
        CLOCK_KEY=CLOCK_KEY,
        EXECUTION=EXECUTION,
        NEWER_KEY=NEWER_KEY,
        NEWER_SECS=NEWER_SECS,
    ),
    "acknowledge": script(
        "acknowledge",
        EXECUTED_KEY=EXECUTED_KEY,
        EXECUTION=EXECUTION,
        OPERATIONS_KEY=OPERATIONS_KEY,
    ),
    "retry": script("retry", EXECUTION=EXECUTION, RETRIED_KEY=RETRIED_KEY),
    "hurry": script("hurry"),
    "bury": script("bury", EXECUTION=EXECUTION),
    "hand_on": script("hand_on", EXECUTION=EXECUTION),
    "put_back": script("put_back", EXECUTION=EXECUTION),
    "renew": script("renew", EXECUTION=EXECUTION),
    "recover": script("recover", EXECUTION=EXECUTION, LONGEST_SECS=LONGEST_SECS),
}
