"""Run the scheduler as it is, with a table, a lock and a clock of the test's.

python -I launch_scheduler.py <address> <json>

rows    [[name, interval_secs, operation], ...]
lock    for how long a lock is held without being renewed
clock   a file that says by how many seconds the clock is wrong
"""

import json
import logging
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from hivepipe import scheduler
from hivepipe.periodic import Periodic
from hivepipe.queues.connection import connect

ADDRESS, SAID = sys.argv[1], json.loads(sys.argv[2])
CLOCK = Path(SAID["clock"])


def wrong_time() -> float:
    return time.time() + (float(CLOCK.read_text() or 0) if CLOCK.exists() else 0)


scheduler.time = SimpleNamespace(time=wrong_time, monotonic=time.monotonic)  # type: ignore[attr-defined]
scheduler.LOCK_SECS = SAID["lock"]
scheduler.LONGEST_WAIT_SECS = min(SAID["lock"] / 4, 0.5)
logging.basicConfig(level=logging.INFO)
os.umask(0o077)
rows = [Periodic(*row, "a test") for row in SAID["rows"]]
scheduler.TickScheduler(connect(ADDRESS), rows).run()
