"""The process that enqueues periodic jobs:
`python -I workers/scheduler.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM, SIGINT and SIGHUP. Several may run; only one is active. It ends with its
supervisor; the next stack starts another one.
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
