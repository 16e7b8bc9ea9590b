"""The process that enqueues periodic jobs:
`python -I workers/scheduler.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM, SIGINT and SIGHUP. Several may run; only one is active.
"""

import os

from hivepipe.config.config_file import load_and_use
from hivepipe.files import core_dumps
from hivepipe.home import locate
from hivepipe.jobs.process_log import set_up
from hivepipe.queue.connection import connect
from hivepipe.worker.scheduler import TickScheduler

if __name__ == "__main__":
    os.umask(0o077)
    core_dumps.leave_none()
    load_and_use()
    set_up("scheduler")
    place = locate(".")
    TickScheduler(connect(place.socket), home=place.home).run()
