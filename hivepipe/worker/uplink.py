"""Ship the rows of a home to the team's PostgreSQL as long as the user is in a team.

    turn     connect -> send batches until the server has all -> wait for a change -> ...

The uplink watches the write-ahead log of the database, which changes with every commit of any
process. The uplink disconnects when nothing has changed for some time, so that thousands of
machines need fewer connections. While the server does not answer, retries have an exponential
backoff with jitter.
"""

import logging
import os
import random
import sqlite3
import time
from pathlib import Path

from hivepipe.db.changes import has_changes_after, is_captured, stop_capture
from hivepipe.db.database import open_database
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.errors import HivepipeError, TeamRefusedError
from hivepipe.stack.runtime_folder import Stack
from hivepipe.team import membership
from hivepipe.team.shipment import Shipment
from hivepipe.team.uplink_status import read_status, write_status
from hivepipe.times import backoff_secs
from hivepipe.worker.archive_passes import ArchivePasses
from hivepipe.worker.own_process import SoleProcess

LOOK_SECS = 0.25  # this is also the longest delay of SIGTERM
GATHER_SECS = 0.5  # delay after a change, to send more changes in one batch
REST_SECS = 20.0  # time without a change after which the uplink disconnects
GREET_SECS = 300.0  # longest time until a restored server or new policies are noticed
AWAY_SECS = (1.0, 60.0)
REFUSED_SECS = 300.0

logger = logging.getLogger("hivepipe.uplink")


class Uplink(SoleProcess):
    name = "uplink"

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self._home = stack.home
        self._path = Path(database_path(stack.home))
        self._joined = membership.stamp()
        self._status = read_status(stack.home)
        self._failures = 0
        self._archives = ArchivePasses()

    def run(self) -> None:
        """Ship rows until a stop request, a change of the membership, or an upgrade.

        An unexpected error is shown by `status`, then raised.
        """
        try:
            while self._should_continue():
                self._attempt()
        except Exception as error:  # the supervisor starts another uplink
            self._write_state("away", f"{type(error).__name__}: {error}")
            raise
        finally:
            self._archives.stop()
        if not membership.is_joined():
            with open_database(self._home) as db:
                stop_capture(db)

    def _attempt(self) -> None:
        """Run `_ship`; after a failure, wait before the next attempt."""
        try:
            self._ship()
        except TeamRefusedError as error:
            self._write_state("refused", str(error))
            self._wait(REFUSED_SECS * random.uniform(0.8, 1.2))
        except (HivepipeError, sqlite3.Error, OSError) as error:
            self._write_state("away", str(error))
            self._failures += 1
            first, longest = AWAY_SECS
            delay = backoff_secs(first, self._failures, longest)
            self._wait(delay * random.uniform(0.5, 1.0))

    def _should_continue(self) -> bool:
        is_same = membership.stamp() == self._joined
        return super()._should_continue() and is_same and membership.is_joined()

    def _ship(self) -> None:
        """Send all changes until nothing has changed for REST_SECS; then disconnect and rest."""
        address, share = membership.machine_address(), membership.read().share
        if not self._path.exists():
            self._wait_for_change(GREET_SECS)
            return
        with Shipment(self._home, address, share) as shipment:
            self._write_state("connected", mark=shipment.mark)
            changed_at, seen = time.monotonic(), self._log_state()
            while self._should_continue() and time.monotonic() - changed_at < REST_SECS:
                seen = self._log_state()
                if shipment.ship_next():
                    changed_at = time.monotonic()
                    self._archives.note_change()
                    self._note_sent(shipment)
                elif self._wait_for_change(REST_SECS, seen):
                    self._wait(GATHER_SECS)
            self._note_sent(shipment)
        self._write_state("resting", mark=shipment.mark)
        self._rest(seen)

    def _rest(self, seen: tuple[int, int]) -> None:
        """Stay disconnected until a shared row changes after state `seen`, or for GREET_SECS."""
        until = time.monotonic() + GREET_SECS
        while self._wait_for_change(until - time.monotonic(), seen):
            seen = self._log_state()
            with listings(self._path) as store:
                if not is_captured(store) or has_changes_after(store, self._status.mark):
                    return

    def _wait_for_change(self, secs: float, seen: tuple[int, int] = (0, 0)) -> bool:
        """Wait up to `secs` until the log state differs from `seen`; return whether it does."""
        deadline = time.monotonic() + secs
        while self._should_continue() and time.monotonic() < deadline:
            if self._log_state() != seen:
                return True
            self._archives.poll()
            time.sleep(LOOK_SECS)
        return False

    def _wait(self, secs: float) -> None:
        deadline = time.monotonic() + secs
        while self._should_continue() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_SECS))

    def _log_state(self) -> tuple[int, int]:
        """Return (time, size) of the write-ahead log, a value that changes with every commit."""
        try:
            status = os.stat(f"{self._path}-wal")
        except OSError:
            return 0, 0
        return status.st_mtime_ns, status.st_size

    def _note_sent(self, shipment: Shipment) -> None:
        self._failures = 0  # not when connected: a batch may still fail, for example without git
        self._status.shipped_at = time.time()
        self._status.left_out += shipment.left_out
        shipment.left_out = 0
        self._write_state("connected", mark=shipment.mark)

    def _write_state(self, state: str, error: str = "", mark: int | None = None) -> None:
        """Write the state, and the last sent version `mark`, for `status`; log a new state."""
        status = self._status
        if (state, error) != (status.state, status.error):
            level = logging.INFO if state in ("connected", "resting") else logging.WARNING
            logger.log(level, "%s", f"{state}: {error}" if error else state)
            status.since = time.time()
        status.state, status.error = state, error
        status.mark = status.mark if mark is None else mark
        write_status(self._home, status)
