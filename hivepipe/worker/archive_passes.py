"""Start passes over the archives, one at a time, some time after rows were sent.

A session has many turns. A pass after each turn would send the archive's last segment each time.
"""

import logging
import subprocess
import time

from hivepipe.programs import module
from hivepipe.times import backoff_secs

NOTHING_TO_DO = 3  # exit code of a pass if the team does not store archives
SETTLE_SECS = 15.0
EVERY_SECS = 30.0
NOTHING_SECS = 300.0  # delay of the next pass if the team does not store archives
RETRY_SECS = (60.0, 600.0)

logger = logging.getLogger("hivepipe.uplink")


class ArchivePasses:
    """The passes over the archives of one home, as child processes."""

    def __init__(self) -> None:
        """Schedule a first pass, because earlier passes are unknown."""
        self._due = time.monotonic() + SETTLE_SECS
        self._not_before = 0.0
        self._failures = 0
        self._child: subprocess.Popen[bytes] | None = None

    def note_change(self) -> None:
        """Schedule a pass in SETTLE_SECS, unless a pass is already scheduled before that time."""
        self._due = min(self._due, time.monotonic() + SETTLE_SECS)

    def poll(self) -> None:
        """Start a pass that is due, or record the result of a pass that has ended; never wait."""
        now = time.monotonic()
        if self._child:
            code = self._child.poll()
            if code is not None:
                self._child = None
                self._ended(code, now)
        elif now >= max(self._due, self._not_before):
            self._due = float("inf")
            words = module("hivepipe.worker.archive_pass")
            try:
                self._child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
            except OSError as error:
                logger.warning("no pass over the archives: %s", error)
                self._ended(1, now)

    def stop(self) -> None:
        """End a running pass; the next pass sends the rest."""
        if self._child:
            self._child.terminate()
            self._child.wait()

    def _ended(self, code: int, now: float) -> None:
        self._failures = self._failures + 1 if code not in (0, NOTHING_TO_DO) else 0
        self._not_before = now + (NOTHING_SECS if code == NOTHING_TO_DO else EVERY_SECS)
        if self._failures:
            first, longest = RETRY_SECS
            self._due = self._not_before = now + backoff_secs(first, self._failures - 1, longest)
