"""Move spooled events of a home to a remote Redis, to which hooks do not connect.

Hooks wake the forwarder with a datagram.
"""

import logging
import time
from pathlib import Path

from redis.exceptions import RedisError

from hivepipe.queue.client import RefusedError
from hivepipe.queue.connection import connect
from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.wake_up import WakeUp
from hivepipe.worker.own_process import SoleProcess

LONGEST_WAIT_SECS = 1.0  # this is also the longest delay of SIGTERM
REDIS_AWAY_SECS = (0.1, 0.2, 0.5, 1.0)

logger = logging.getLogger("hivepipe.forwarder")


class Forwarder(SoleProcess):
    name = "forwarder"

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        connection = connect(stack.address)
        self._housekeeper = Housekeeper(connection, Path(stack.home), stack.address)
        self._wake_up = WakeUp(stack.folder)

    def run(self) -> None:
        """Move spooled events until a stop request or an upgrade.

        After an upgrade, supervisord starts the new version.
        """
        away = 0
        while self._should_continue():
            try:
                moved = self._housekeeper.drain()
                away = 0
                if not moved:
                    self._wake_up.wait(LONGEST_WAIT_SECS)
            except (RefusedError, RedisError) as error:
                wait = REDIS_AWAY_SECS[min(away, len(REDIS_AWAY_SECS) - 1)]
                away += 1
                logger.warning("Redis is away (%s), again in %s s", error, wait)
                time.sleep(wait)  # a wake-up datagram does not shorten this wait
        self._wake_up.close()
