"""Idle detection: a stack is idle if queues and spool are empty and no session is open.

Periodic work does not keep a stack busy, but an open Claude Code does, even if it is unused.
"""

import os
import time

from hivepipe.db.database import Database
from hivepipe.db.sessions import open_processes
from hivepipe.hook.alive import lives
from hivepipe.orchestrator.folder import running_workers
from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.queue.spooled import waiting_events

LOOK_EVERY_SECS = 1.0


class IdleWatch:
    """The idle time of a stack, checked at most once a second."""

    def __init__(self, home: str, housekeeper: Housekeeper) -> None:
        """Set up; the idle time begins now."""
        self._home = home
        self._housekeeper = housekeeper
        self._accepted = -1
        self._since = self._looked_at = time.monotonic()

    def idle_secs(self, db: Database) -> float:
        """Return the idle time in seconds, as of the last check."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_EVERY_SECS:
            return self._looked_at - self._since
        self._looked_at = now
        accepted = self._housekeeper.accepted()
        if accepted != self._accepted or self._is_needed(db):
            self._accepted = accepted
            self._since = now
        return now - self._since

    def _is_needed(self, db: Database) -> bool:
        return (
            not self._housekeeper.nothing_waits()
            or bool(waiting_events(self._home))
            or any(lives(pid, started) for pid, started in open_processes(db, os.uname().nodename))
            or bool(running_workers(self._home))
        )
