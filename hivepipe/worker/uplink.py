"""Ships the rows of a home to the team's PostgreSQL while a team is joined.

    turn     connect -> send batches until the server has all -> wait for a change -> ...

It is woken by the write-ahead log of the database, which changes with every commit of any process.
It disconnects after a while without a change: ten thousand machines are not ten thousand
connections. While the server is away it waits longer and longer, with jitter.
"""

import logging
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from types import FrameType

from hivepipe.config.config_file import load_and_use
from hivepipe.db.changes import is_captured, is_something_new, stop_capture
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.errors import LockHeldError, StoreError, TeamError, TeamRefusedError
from hivepipe.files import core_dumps
from hivepipe.jobs.process_log import set_up
from hivepipe.redact.configured import use_rules
from hivepipe.stack.installed import installed
from hivepipe.stack.lock import Stack, make_private, take_lock
from hivepipe.team import membership
from hivepipe.team.shipment import Shipment
from hivepipe.team.uplink_status import read_status, write_status
from hivepipe.worker.archive_passes import ArchivePasses

ANOTHER_HOLDS_IT = 75
LOCK_WAIT_SECS = 10.0
LOOK_SECS = 0.25  # also the longest delay of SIGTERM
GATHER_SECS = 0.5  # changes that follow each other travel together
REST_SECS = 20.0  # without a change, until it disconnects
GREET_SECS = 300.0  # a restored server and new policies are noticed within this time
AWAY_SECS = (1.0, 60.0)
REFUSED_SECS = 300.0

logger = logging.getLogger("hivepipe.uplink")


class Uplink:
    """The uplink of one home."""

    def __init__(self, stack: Stack) -> None:
        """Take the lock; LockHeldError: the home has an uplink already."""
        self._lock = take_lock(stack.lock("uplink"), LOCK_WAIT_SECS)
        self._home = stack.home
        self._path = Path(database_path(stack.home))
        self._version = installed()
        self._joined = membership.stamp()
        self._status = read_status(stack.home)
        self._failures = 0
        self._archives = ArchivePasses()
        self._is_stopped = False

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Stop after the batch at hand."""
        self._is_stopped = True

    def run(self) -> None:
        """Ship until told to stop, until the membership changes, or until an upgrade."""
        while self._goes_on():
            try:
                self._ship()
            except TeamRefusedError as error:
                self._say("refused", str(error))
                self._wait(REFUSED_SECS * random.uniform(0.8, 1.2))
            except (TeamError, StoreError, sqlite3.Error, OSError) as error:
                self._say("away", str(error))
                self._failures += 1
                first, longest = AWAY_SECS
                self._wait(min(first * 2**self._failures, longest) * random.uniform(0.5, 1.0))
        self._archives.stop()
        if not membership.is_joined():
            with closing(Database(self._path)) as db:
                stop_capture(db)

    def _goes_on(self) -> bool:
        is_same = installed() == self._version and membership.stamp() == self._joined
        return not self._is_stopped and is_same and membership.is_joined()

    def _ship(self) -> None:
        """Send all that changes, until nothing has changed for a while."""
        address, share = membership.machine_address(), membership.read().share
        if not self._path.exists():
            self._wait_for_change(GREET_SECS)
            return
        with Shipment(self._path, address, share) as shipment:
            self._failures = 0
            self._say("connected", mark=shipment.mark)
            changed_at = time.monotonic()
            while self._goes_on() and time.monotonic() - changed_at < REST_SECS:
                seen = self._log_state()
                if shipment.ship_next():
                    changed_at = time.monotonic()
                    self._archives.note_change()
                    self._note(shipment)
                elif self._wait_for_change(REST_SECS, seen):
                    self._wait(GATHER_SECS)
            self._note(shipment)
        self._say("resting", mark=shipment.mark)
        self._rest(seen)

    def _rest(self, seen: tuple[int, int]) -> None:
        """Stay disconnected until a row of a shared table changes; other commits are more."""
        until = time.monotonic() + GREET_SECS
        while self._wait_for_change(until - time.monotonic(), seen):
            seen = self._log_state()
            with listings(self._path) as store:
                if not is_captured(store) or is_something_new(store, self._status.mark):
                    return

    def _wait_for_change(self, secs: float, seen: tuple[int, int] = (0, 0)) -> bool:
        """Wait until the database changes; False: it did not within this time."""
        deadline = time.monotonic() + secs
        while self._goes_on() and time.monotonic() < deadline:
            if self._log_state() != seen:
                return True
            self._archives.look()
            time.sleep(LOOK_SECS)
        return False

    def _wait(self, secs: float) -> None:
        deadline = time.monotonic() + secs
        while self._goes_on() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_SECS))

    def _log_state(self) -> tuple[int, int]:
        """Return a value that changes with every commit."""
        try:
            status = os.stat(f"{self._path}-wal")
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_size

    def _note(self, shipment: Shipment) -> None:
        self._status.shipped_at = time.time()
        self._status.left_out += shipment.left_out
        shipment.left_out = 0
        self._say("connected", mark=shipment.mark)

    def _say(self, state: str, error: str = "", mark: int | None = None) -> None:
        """Keep the state for `status`; a line in the log for each new one."""
        status = self._status
        if (state, error) != (status.state, status.error):
            level = logging.INFO if state in ("connected", "resting") else logging.WARNING
            logger.log(level, "%s", f"{state}: {error}" if error else state)
            status.since = time.time()
        status.state, status.error = state, error
        status.mark = status.mark if mark is None else mark
        write_status(self._home, status)


def serve() -> None:
    """Run the uplink until SIGTERM; exit 0, or 75 if the home has one already."""
    os.umask(0o077)
    core_dumps.leave_none()
    place, _ = load_and_use()
    use_rules(place.home)
    set_up("uplink")
    try:
        stack = Stack.of(place)
        make_private(stack.folder)
        uplink = Uplink(stack)
    except LockHeldError as error:
        logger.error("%s", error)
        sys.exit(ANOTHER_HOLDS_IT)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, uplink.stop)
    uplink.run()
