"""The writer of a home: the one process that executes high, medium and low.

Run as `python -I workers/writer.py` with HIVEPIPE_HOME set; exits 0 on SIGTERM and SIGINT after
the job at hand, 75 if the home has a writer already.
"""

import logging
import os
import sys

from hivepipe.errors import LockHeldError
from hivepipe.home import locate
from hivepipe.queues.connection import connect
from hivepipe.queues.housekeeping import Housekeeper
from hivepipe.queues.writer import Writer
from hivepipe.stack.lock import runtime_for, take_lock
from hivepipe.store.database import Database, database_path

ANOTHER_HOLDS_IT = 75
LOCK_WAIT_SECS = 10.0


def main() -> int:
    """Hold the lock, bring the schema up to date, work until told to stop."""
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    place = locate(".")
    try:
        take_lock(f"{runtime_for(place.home)}/writer.lock", LOCK_WAIT_SECS)
    except LockHeldError as error:
        logging.getLogger("writer").error("%s", error)
        return ANOTHER_HOLDS_IT
    Database(database_path(place.home)).close()
    housekeeper = Housekeeper(connect(place.socket), place.socket, place.home)
    housekeeper.start()
    try:
        Writer(connect(place.socket)).work(with_scheduler=False, logging_level="WARNING")
    finally:
        housekeeper.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
