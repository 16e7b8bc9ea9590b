"""Run the scheduler with its own table and lock time.

python -I launch_scheduler.py <address> <json>

rows    [[name, interval_secs, operation], ...], optionally with the worker that the row replaces
home    the folder of the spool
lock    seconds for which a lock is held without renewal
"""

import json
import logging
import os
import sys

from hivepipe.jobs.schedule_table import Periodic
from hivepipe.queue.connection import connect
from hivepipe.worker import scheduler

ADDRESS, SAID = sys.argv[1], json.loads(sys.argv[2])
scheduler.LOCK_SECS = SAID["lock"]
scheduler.ABSENT_SECS = 1.0
scheduler.LONGEST_WAIT_SECS = min(SAID["lock"] / 4, 0.5)
logging.basicConfig(level=logging.INFO)
os.umask(0o077)
rows = [Periodic(*row[:3], "a test", *row[3:]) for row in SAID["rows"]]
scheduler.TickScheduler(connect(ADDRESS), rows, SAID.get("home", "")).run()
