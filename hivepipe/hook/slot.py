"""One reused file with the event that the intake has accepted but not yet handed over.

    <home>/intake.slot                    empty: no event is held
    <home>/spool/<event time>_<pid>.raw   the event, as a native hook without an intake writes it

Writing to an open file and renaming it takes a sixth of the time of creating a file. The intake
holds a lock on the file, so that no other process converts the event meanwhile
(hivepipe.queue.raw_spool). The lock ends with the intake. After that, the event is converted like
any other raw event.
"""

import fcntl
import posix
from time import time_ns

from hivepipe.home import open_or_make
from hivepipe.queue.spool import make_private_folder

WAITING_NS = 600 * 10**9


class Slot:
    """The file `intake.slot` of a home, opened when it is needed."""

    def __init__(self, home: str) -> None:
        self._spool = f"{home}/spool"
        self._idle = f"{home}/intake.slot"
        self._event = ""
        self._file = -1

    def keep(self, time_ns: int, frame: bytes) -> bool:
        """Write a frame into the spool; return False if the disk refuses it."""
        try:
            # A link count of 0: another process deleted the file together with the previous event.
            if self._file < 0 or posix.fstat(self._file).st_nlink == 0:
                self._open()
            if posix.pwrite(self._file, frame, 0) != len(frame):
                raise OSError  # a full disk; the next event needs an empty file
            self._event = f"{self._spool}/{time_ns:020d}_{posix.getpid()}.raw"
            posix.rename(self._idle, self._event)
        except OSError:
            self.close()
            return False
        return True

    def remove_event(self) -> None:
        """Remove the event from the spool, because it is stored elsewhere now.

        If the disk refuses this, the event stays in the spool, and the file is closed.
        """
        try:
            posix.rename(self._event, self._idle)
            posix.ftruncate(self._file, 0)
        except OSError:
            self.close()

    def is_behind(self) -> bool:
        """Tell whether raw events wait in the spool. Call this while the slot holds no event.

        An event that has waited for ten minutes does not count, because it cannot be converted.
        """
        now = time_ns()
        oldest, newest = f"{now - WAITING_NS:020d}", f"{now + WAITING_NS:020d}"
        try:
            names = [name for name in posix.listdir(self._spool) if name.endswith(".raw")]
            return any(oldest < name < newest for name in names)
        except OSError:  # no event was spooled yet
            return False

    def close(self) -> None:
        """Stop using the file, so that the process that drains the spool gets the event."""
        if self._file >= 0:
            posix.close(self._file)
        self._file = -1

    def _open(self) -> None:
        self.close()
        make_private_folder(self._spool)
        self._file = open_or_make(self._idle, posix.O_RDWR)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        posix.ftruncate(self._file, 0)
