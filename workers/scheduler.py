"""The process that enqueues periodic jobs:
`python -I workers/scheduler.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM, SIGINT and SIGHUP. Several may run; only one is active.
"""

from hivepipe.queue.connection import connect
from hivepipe.worker.own_process import begin
from hivepipe.worker.scheduler import TickScheduler

if __name__ == "__main__":
    place, _ = begin("scheduler")
    TickScheduler(connect(place.socket), home=place.home).run()
