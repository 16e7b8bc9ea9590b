"""What the writer does beside the jobs: the spool moves in, strays come back, files stay small."""

import logging
import os
import time
from contextlib import suppress
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from hivepipe.errors import BadEnvelopeError, NewerEnvelopeError
from hivepipe.home import logs_folder
from hivepipe.ownership.logs import HOOK_LOG, name_to_rotate_to
from hivepipe.ownership.manifest import Manifest
from hivepipe.periodic import runs_by_the_clock
from hivepipe.queues.claim_scripts import NEWER_KEY, NEWER_SECS
from hivepipe.queues.connection import ACCEPTED_KEY, send
from hivepipe.queues.names import ALL_QUEUES
from hivepipe.queues.reconciler import reconcile, redact_failed_jobs
from hivepipe.queues.rq_workers import drop_dead
from hivepipe.queues.spool import spool_folders
from hivepipe.queues.spooled import abandoned, read_spool_file, set_aside, spool_files
from hivepipe.queues.stock_jobs import count_executed
from hivepipe.queues.ticks import drop_superseded

FILES_PER_TURN = 500
TURN_SECS = 1.0  # of one turn: jobs wait meanwhile
ASIDES_SECS = 0.2
QUIET_SECS = 2.0
REWRITE_EVERY_SECS = 10.0
RECONCILE_EVERY_SECS = 30.0
HOOK_LOG_BYTES = 1_000_000
MOST_PERIODIC = 100  # in one list: more than the table has rows
STUCK_SECS = 10.0
PUSH_SECS = 2.0  # nobody waits for the drain; a slow Redis must not stop it

logger = logging.getLogger(__name__)


class Housekeeper:
    """Called by the writer between its turns; every job of its own is a short one."""

    def __init__(self, connection: Redis, home: Path, address: str) -> None:
        """The spool goes the same way as events: over a socket where the address is local."""
        self._connection = connection
        self._address = address
        self._is_our_server = address.startswith("/")  # of any other's files nothing is known
        self._spools = [Path(folder) for folder in spool_folders(str(home))]
        self._manifest = Manifest(str(home))
        self._hook_log = Path(logs_folder(str(home)), "hook-errors.log")
        self._too_new: dict[str, int] = {}  # spool file -> version that this hivepipe cannot read
        self._bad: dict[Path, str] = {}  # what is to be set aside, and why
        self._stuck: dict[Path, float] = {}  # what cannot be read or moved -> until when
        self._cleansed = -1  # accepted jobs at the last rewrite
        self._rewritten_at = 0.0
        self._quiet_since = 0.0
        self._reconciled_at = 0.0

    def drain(self) -> int:
        """Move spooled events into Redis, oldest first; return how many files of this turn.

        What cannot be read is set aside afterwards, a few in each turn: it holds up no event.

        RefusedError: Redis went away; what was not moved is still there. The ids are those the
        hook gave: an event that had arrived after all is known, and enters once.
        """
        moved = 0
        end = time.monotonic() + TURN_SECS
        for path in self._waiting(time.monotonic()):
            if moved == FILES_PER_TURN:
                break
            if time.monotonic() > end:  # the rest is looked at before anything newer
                moved = moved or 1
                break
            moved += self._move(path)
        end = time.monotonic() + ASIDES_SECS
        while self._bad and time.monotonic() < end:
            path = next(iter(self._bad))
            self._set_aside(path, self._bad.pop(path))
        if self._too_new:
            self._connection.set(NEWER_KEY, max(self._too_new.values()), ex=NEWER_SECS)
        return moved

    def _move(self, path: Path) -> bool:
        """Move one file; False: it stays, or was gone."""
        try:
            messages = [job.message for job in read_spool_file(path)]
            send(self._connection, self._address, messages, PUSH_SECS)
            path.unlink(missing_ok=True)
        except FileNotFoundError:  # `hivepipe drain` was quicker
            return False
        except NewerEnvelopeError as error:  # waits for the next release
            if not self._too_new:
                logger.warning("the spool has events of a newer hivepipe: upgrade this one")
            self._too_new[path.name] = error.version
            return False
        except BadEnvelopeError as error:
            self._bad[path] = str(error)  # a slow move each: what can be read goes first
            return False
        except OSError as error:
            self._pass_over(path, "cannot be read", error)
            return False
        return True

    @property
    def has_bad_ones(self) -> bool:
        """Are there files left that the next turn sets aside?"""
        return bool(self._bad)

    def _waiting(self, now: float) -> list[Path]:
        """Return the files that can be moved, as far as is known, oldest first."""
        self._stuck = {path: until for path, until in self._stuck.items() if until > now}
        found = [path for spool in self._spools for path in self._in(spool)]
        known = {*self._stuck, *self._bad}
        return sorted(
            (p for p in found if p.name not in self._too_new and p not in known),
            key=lambda path: path.name,
        )

    def _in(self, spool: Path) -> list[Path]:
        if spool in self._stuck:
            return []
        try:
            return spool_files(spool)
        except OSError as error:  # no folder, or one that nobody may look into
            self._pass_over(spool, "cannot be read", error)
            return []

    def _pass_over(self, path: Path, reason: str, error: OSError) -> None:
        """Leave it where it is for a while: others go on, and it is said once in a while."""
        logger.error("spool: %s stays: %s; %s", path.name, reason, error.strerror)
        self._stuck[path] = time.monotonic() + STUCK_SECS

    def _set_aside(self, path: Path, reason: str) -> None:
        try:
            set_aside(path, reason)
        except OSError as error:
            self._pass_over(path, reason, error)
        else:
            logger.error("spool file %s set aside: %s", path.name, reason)

    def tidy(self) -> None:
        """Do what is due while nothing waits."""
        now = time.monotonic()
        self._cleanse_when_quiet(now)
        if now - self._reconciled_at > RECONCILE_EVERY_SECS:
            self._reconciled_at = now
            self.look_after()

    def look_after(self) -> None:
        """Bring strays back; tidy up after workers and hooks that were killed."""
        drop_superseded(self._connection)
        for name, reason in drop_dead(self._connection):
            logger.warning("worker %s died without a word: %s", name, reason)
        redact_failed_jobs(self._connection, not self._is_our_server)
        count_executed(self._connection)
        brought_back = reconcile(self._connection, not self._is_our_server)
        if brought_back:
            logger.warning("brought back %d jobs that were in no list", brought_back)
        self._set_torn_files_aside()
        self._remove_spare_folder()
        self._rotate_hook_log()

    def cleanse_at_end(self) -> None:
        """Leave an append-only file without the texts of finished jobs."""
        try:
            if self._is_our_server and self.nothing_waits():
                self._connection.bgrewriteaof()
                self._wait_for_rewrite()
        except RedisError as error:
            logger.warning("append-only file not rewritten: %s", error)

    def _cleanse_when_quiet(self, now: float) -> None:
        """Rewrite the AOF once the queues are empty: it keeps every text that ever passed."""
        if not self._is_our_server:
            return
        accepted = self.accepted()
        if accepted == self._cleansed or not self.nothing_waits():
            self._quiet_since = 0.0
            return
        self._quiet_since = self._quiet_since or now
        if now - self._quiet_since < QUIET_SECS or now - self._rewritten_at < REWRITE_EVERY_SECS:
            return
        try:
            self._connection.bgrewriteaof()
        except ResponseError:  # one is running
            return
        self._cleansed, self._rewritten_at = accepted, now

    def accepted(self) -> int:
        """Return how many jobs have ever come in, but for those that run by the clock."""
        return int(self._connection.get(ACCEPTED_KEY) or 0)

    def nothing_waits(self) -> bool:
        """Is no job waiting, being executed or due to come again, but for those by the clock?"""
        some = self._connection.pipeline()
        for queue in ALL_QUEUES:
            some.lrange(f"rq:queue:{queue}", 0, MOST_PERIODIC)
            some.zrange(f"rq:wip:{queue}", 0, MOST_PERIODIC)
            some.zrange(f"rq:scheduled:{queue}", 0, MOST_PERIODIC)
        members = [member for found in some.execute() for member in found]
        ids = (member.decode("utf-8", "replace").partition(":")[0] for member in members)
        return all(runs_by_the_clock(id) for id in ids)

    def _wait_for_rewrite(self) -> None:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            state = self._connection.info("persistence")
            if not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]):
                return
            time.sleep(0.02)

    def _set_torn_files_aside(self) -> None:
        for spool in self._spools:
            for path in list(abandoned(spool, time.time())):
                self._set_aside(path, "half-written: its hook died")

    def _remove_spare_folder(self) -> None:
        """The one in memory is made when the home takes no file; empty, it goes."""
        spool = self._spools[-1]
        with suppress(OSError):
            for folder in (spool, spool.parent, spool.parent.parent):
                folder.rmdir()

    def _rotate_hook_log(self) -> None:
        try:
            is_large = self._hook_log.stat().st_size > HOOK_LOG_BYTES
            if is_large and HOOK_LOG in self._manifest.made():
                os.rename(self._hook_log, name_to_rotate_to(self._hook_log, self._manifest))
        except OSError:
            return
