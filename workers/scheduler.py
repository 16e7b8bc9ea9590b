"""The process that fires what runs by the clock:
`python -I workers/scheduler.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM, SIGINT and SIGHUP. Several may run; one acts.
"""

import logging
import os

from hivepipe.home import locate
from hivepipe.queues.connection import connect
from hivepipe.scheduler import TickScheduler

if __name__ == "__main__":
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    TickScheduler(connect(locate(".").socket)).run()
