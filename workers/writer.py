"""The writer of a home: the one process that executes high, medium and low.

Run as `python -I workers/writer.py` with HIVEPIPE_HOME set; exits 0 on SIGTERM, SIGINT and SIGHUP
after the batch at hand and at most 100 jobs more, 75 if the home has a writer already.
"""

import logging
import os
import sys

from rq import Queue

from hivepipe.errors import LockHeldError
from hivepipe.home import locate
from hivepipe.queues.connection import QUEUES, connect
from hivepipe.writer import Writer

ANOTHER_HOLDS_IT = 75


def main() -> int:
    """Work until told to stop."""
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    connection = connect(locate(".").socket)
    queues = [Queue(name, connection=connection) for name in QUEUES]
    writer = Writer(queues, connection=connection, worker_ttl=20, prepare_for_work=True)
    try:
        writer.work()
    except LockHeldError as error:
        logging.getLogger("hivepipe.writer").error("%s", error)
        return ANOTHER_HOLDS_IT
    return 0


if __name__ == "__main__":
    sys.exit(main())
