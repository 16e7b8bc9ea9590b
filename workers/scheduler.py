"""The process that enqueues periodic jobs:
`python -I workers/scheduler.py` with HIVEPIPE_HOME set.

The exit code is 0 after SIGTERM, SIGINT or SIGHUP. Several schedulers can run, but only one is
active. A scheduler ends with its supervisor; the next stack starts another one.
"""

from hivepipe.queue.connection import connect
from hivepipe.stack.parent_death import end_with_supervisor
from hivepipe.stack.runtime_folder import Stack
from hivepipe.worker.own_process import begin
from hivepipe.worker.scheduler import TickScheduler

if __name__ == "__main__":
    place, _ = begin("scheduler")
    end_with_supervisor(Stack.of(place))
    TickScheduler(connect(place.socket), home=place.home).run()
