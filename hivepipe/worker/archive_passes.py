"""When the uplink starts a pass over the archives: a while after rows were sent, never two at once.

Turns follow each other; a pass per turn would write the end of the archive again and again.
"""

import logging
import subprocess
import sys
import time

NOTHING_TO_DO = 3  # exit code of a pass: the team keeps no archives
SETTLE_SECS = 15.0
EVERY_SECS = 30.0
NOTHING_SECS = 300.0  # without a store: until the next look
RETRY_SECS = (60.0, 600.0)

logger = logging.getLogger("hivepipe.uplink")


class ArchivePasses:
    """The passes of one home, as child processes."""

    def __init__(self) -> None:
        """Have one made soon: what was sent last is not known."""
        self._due = time.monotonic() + SETTLE_SECS
        self._not_before = 0.0
        self._failures = 0
        self._child: subprocess.Popen[bytes] | None = None

    def note_change(self) -> None:
        """Have a pass made when things have settled."""
        self._due = min(self._due, time.monotonic() + SETTLE_SECS)

    def look(self) -> None:
        """Start a pass that is due; take note of one that has ended. Never waits."""
        now = time.monotonic()
        if self._child:
            code = self._child.poll()
            if code is not None:
                self._child = None
                self._ended(code, now)
        elif now >= max(self._due, self._not_before):
            self._due = float("inf")
            words = [sys.executable, "-I", "-m", "hivepipe.worker.archive_pass"]
            try:
                self._child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
            except OSError as error:
                logger.warning("no pass over the archives: %s", error)
                self._ended(1, now)

    def stop(self) -> None:
        """End a pass: the next one goes on where it was."""
        if self._child:
            self._child.terminate()
            self._child.wait()

    def _ended(self, code: int, now: float) -> None:
        self._failures = self._failures + 1 if code not in (0, NOTHING_TO_DO) else 0
        self._not_before = now + (NOTHING_SECS if code == NOTHING_TO_DO else EVERY_SECS)
        if self._failures:
            first, longest = RETRY_SECS
            self._due = self._not_before = now + min(first * 2 ** (self._failures - 1), longest)
