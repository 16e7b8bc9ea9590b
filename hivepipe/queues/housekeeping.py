"""What happens beside the jobs: spooled events move in, due retries too, the AOF is cleansed.

A thread of the writer, with a connection of its own.
"""

import logging
import threading
import time
from pathlib import Path

import redis
from redis import Redis

from hivepipe.errors import BadEnvelopeError
from hivepipe.queues import client
from hivepipe.queues.connection import ACCEPTED_KEY, QUEUES
from hivepipe.queues.spooled import abandoned, read_spool_file, set_aside, spool_files
from hivepipe.queues.writer import requeue_due

TICK_SECS = 0.5
QUIET_SECS = 2.0
REWRITE_EVERY_SECS = 10.0
PUSH_SECS = 2.0  # nobody waits for the drain; a slow Redis must not stop it

logger = logging.getLogger(__name__)


class Housekeeper(threading.Thread):
    """Runs until `stop` is called, then cleanses the AOF a last time."""

    def __init__(self, connection: Redis, address: str, home: str) -> None:
        """`address` is what the wire client takes, for the spool goes the same way as events."""
        super().__init__(name="housekeeper", daemon=True)
        self._connection = connection
        self._address = address
        self._spool = Path(home) / "spool"
        self._stopping = threading.Event()
        self._cleansed = -1  # accepted jobs at the last rewrite
        self._rewritten_at = 0.0
        self._quiet_since = 0.0

    def run(self) -> None:
        """Tick until told to stop; a Redis that is away is waited for."""
        while not self._stopping.wait(TICK_SECS):
            try:
                drain_spool(self._spool, self._address)
                requeue_due(self._connection)
                self._cleanse_when_quiet()
            except (redis.RedisError, client.RefusedError) as error:
                logger.warning("housekeeping waits for Redis: %s", error)
            except OSError as error:
                logger.error("spool: %s", error)

    def stop(self) -> None:
        """End the thread and leave an append-only file without the texts of finished jobs."""
        self._stopping.set()
        self.join(timeout=5)
        try:
            if self._nothing_waits():
                self._connection.bgrewriteaof()
                self._wait_for_rewrite()
        except redis.RedisError as error:
            logger.warning("append-only file not rewritten: %s", error)

    def _cleanse_when_quiet(self) -> None:
        """Rewrite the AOF once the queues are empty: it keeps every text that ever passed."""
        now = time.monotonic()
        accepted = int(self._connection.get(ACCEPTED_KEY) or 0)
        if accepted == self._cleansed or not self._nothing_waits():
            self._quiet_since = 0.0
            return
        self._quiet_since = self._quiet_since or now
        if now - self._quiet_since < QUIET_SECS or now - self._rewritten_at < REWRITE_EVERY_SECS:
            return
        self._connection.bgrewriteaof()
        self._cleansed, self._rewritten_at = accepted, now

    def _nothing_waits(self) -> bool:
        counts = self._connection.pipeline()
        for queue in QUEUES:
            counts.llen(f"rq:queue:{queue}")
            counts.zcard(f"rq:wip:{queue}")
            counts.zcard(f"rq:scheduled:{queue}")
        return not any(counts.execute())

    def _wait_for_rewrite(self) -> None:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            state = self._connection.info("persistence")
            if not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]):
                return
            time.sleep(0.02)


def drain_spool(folder: Path, address: str) -> int:
    """Move spooled events into Redis, oldest first; return how many files.

    RefusedError: Redis went away; what was not moved is still there. The ids are those the hook
    gave: an event that had arrived after all is known, and enters once.
    """
    moved = 0
    for path in spool_files(folder):
        try:
            spooled = read_spool_file(path)
        except FileNotFoundError:
            continue
        except BadEnvelopeError as error:
            logger.error("spool file %s set aside: %s", path.name, error)
            set_aside(path, str(error))
            continue
        client.push(address, [job.message for job in spooled], PUSH_SECS)
        path.unlink(missing_ok=True)
        moved += 1
    for path in abandoned(folder, time.time()):
        logger.error("spool file %s set aside: half-written, its hook died", path.name)
        set_aside(path, "half-written: its hook died")
    return moved
