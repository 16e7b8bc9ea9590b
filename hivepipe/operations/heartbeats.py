"""Flush the activity of sessions from Redis to the store every few seconds, as one batch."""

import logging
import sqlite3
import time

from redis import Redis

from hivepipe.db.activity import record_activity
from hivepipe.db.database import Database
from hivepipe.db.forget import is_forgotten
from hivepipe.db.session_state import note_work
from hivepipe.queue.activity import Activity, take_activity
from hivepipe.times import stored_time

EVERY_SECS = 5.0

logger = logging.getLogger(__name__)


class Heartbeats:
    """Flushes the sessions' activity; the writer calls it between two batches of jobs."""

    def __init__(self, connection: Redis) -> None:
        """Set up; the first flush includes the activity that an earlier writer left."""
        self._connection = connection
        self._flushed_at = float("-inf")

    def flush_if_due(self, db: Database) -> None:
        """Write the sessions' activity to the store if a flush is due. May raise RedisError."""
        if time.monotonic() - self._flushed_at >= EVERY_SECS:
            self._flushed_at = time.monotonic()
            self.flush(db)

    def make_due(self) -> None:
        """Make a flush due before the next batch, because a session or an agent has ended."""
        self._flushed_at = float("-inf")

    def flush(self, db: Database) -> None:
        """Write the sessions' activity to the store. If this fails, the activity stays in Redis."""
        taken = take_activity(self._connection)
        if not taken:
            return
        try:
            with db.transaction():
                for activity in taken:
                    if not is_forgotten(db, activity.session):
                        _record(db, activity)
        except sqlite3.Error as error:
            logger.warning("activity of %d sessions stays in Redis: %s", len(taken), error)
            return
        take_activity(self._connection, taken)  # newer activity is stored by the next flush


def _record(db: Database, activity: Activity) -> None:
    totals = {name: getattr(activity, name) for name in ("calls", "failed", "denied", "warned")}
    state = {
        "open_calls": activity.open_calls,
        "turn_is_open": activity.turn_is_open,
        "waits_for": activity.waits_for or None,
        "task_id": activity.task or None,
        "profile": activity.profile or None,
        "last_work_at": stored_time(activity.work_ms * 1_000_000) if activity.work_ms else None,
        "last_active_at": stored_time(activity.last_ms * 1_000_000),
    }
    record_activity(db, activity.session, activity.since_ms, totals, state)
    note_work(db, activity.session)
