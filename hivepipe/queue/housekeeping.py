"""The writer's work between jobs: drain the spool, requeue lost jobs, rotate files."""

import logging
import os
import time
from contextlib import suppress
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from hivepipe.errors import BadEnvelopeError, NewerEnvelopeError
from hivepipe.files.logs import HOOK_LOG, name_to_rotate_to
from hivepipe.files.manifest import Manifest
from hivepipe.home import logs_folder
from hivepipe.jobs.schedule_table import is_periodic_id
from hivepipe.queue.claims import NEWER_KEY, NEWER_SECS
from hivepipe.queue.connection import ACCEPTED_KEY
from hivepipe.queue.enqueue import enqueue
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.raw_spool import convert_raw_events
from hivepipe.queue.reconciler import reconcile, redact_failed_jobs
from hivepipe.queue.spool import spool_folders
from hivepipe.queue.spooled import abandoned, read_spool_file, set_aside, spool_files
from hivepipe.queue.stock_jobs import count_executed
from hivepipe.queue.ticks import drop_superseded

FILES_PER_TURN = 500
TURN_SECS = 1.0  # longest drain in one turn, because jobs wait meanwhile
ASIDES_SECS = 0.2
QUIET_SECS = 2.0
REWRITE_EVERY_SECS = 10.0
RECONCILE_EVERY_SECS = 30.0
HOOK_LOG_BYTES = 1_000_000
MOST_PERIODIC = 100  # entries to read from a list; there are fewer periodic jobs
STUCK_SECS = 10.0

logger = logging.getLogger(__name__)


class Housekeeper:
    """Housekeeping that the writer does between batches of jobs; each step is short."""

    def __init__(self, connection: Redis, home: Path, address: str) -> None:
        self._connection = connection
        self._address = address
        # hivepipe does not maintain the files of another server
        self._is_our_server = address.startswith("/")
        self._spools = [Path(folder) for folder in spool_folders(str(home))]
        self._home = str(home)
        self._manifest = Manifest(str(home))
        self._hook_log = Path(logs_folder(str(home)), "hook-errors.log")
        self._too_new: dict[str, int] = {}  # spool file -> its version, too new for this hivepipe
        self._bad: dict[Path, str] = {}  # unreadable spool file, to be moved to `bad/` -> reason
        # path that cannot be read or moved -> time of the next attempt
        self._stuck: dict[Path, float] = {}
        self._accepted_at_rewrite = -1  # number of accepted jobs at the last rewrite
        self._rewritten_at = 0.0
        self._quiet_since = 0.0
        self._reconciled_at = 0.0

    def drain(self) -> int:
        """Move spooled events into Redis, the oldest first; return the number of moved files.

        The number is at least 1 if a file remains because the time of this call was over.
        Unreadable files are moved to `bad/` afterwards, a few per call, so that they delay no
        event. Raise RefusedError if Redis cannot be reached; the remaining files stay. The hook has
        assigned the job ids, so an event that is already in Redis is not enqueued again.
        """
        tried = convert_raw_events(self._home, self._stuck)
        again_at = time.monotonic() + STUCK_SECS
        self._stuck |= {path: again_at for path in tried if path.exists()}
        moved = 0
        end = time.monotonic() + TURN_SECS
        for path in self._waiting(time.monotonic()):
            if moved == FILES_PER_TURN:
                break
            if time.monotonic() > end:  # the next turn continues with the oldest file
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
        """Move the event of one file into Redis; return False if it was not moved."""
        try:
            messages = [job.message for job in read_spool_file(path)]
            enqueue(self._connection, self._address, messages)
            path.unlink(missing_ok=True)
        except FileNotFoundError:  # `hivepipe drain` was faster
            return False
        except NewerEnvelopeError as error:  # the file stays until hivepipe is upgraded
            if not self._too_new:
                logger.warning("the spool has events of a newer hivepipe: upgrade this one")
            self._too_new[path.name] = error.version
            return False
        except BadEnvelopeError as error:
            self._bad[path] = str(error)  # moving it is slow, so readable files come first
            return False
        except OSError as error:
            self._pass_over(path, "cannot be read", error)
            return False
        return True

    @property
    def has_unreadable_files(self) -> bool:
        """Tell whether unreadable files remain, which the next call of `drain` moves to `bad/`."""
        return bool(self._bad)

    def _waiting(self, now: float) -> list[Path]:
        """Return the spool files, oldest first, except those known to be unreadable or too new."""
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
        except OSError as error:  # the folder is missing or not readable
            self._pass_over(spool, "cannot be read", error)
            return []

    def _pass_over(self, path: Path, reason: str, error: OSError) -> None:
        """For STUCK_SECS, skip a path that cannot be read or moved; log its error once."""
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
        """Do the work that is due while no job is waiting."""
        now = time.monotonic()
        self._rewrite_aof_when_quiet(now)
        if now - self._reconciled_at > RECONCILE_EVERY_SECS:
            self._reconciled_at = now
            self.maintain()

    def maintain(self) -> None:
        """Requeue lost jobs, count stock workers' jobs, clean up failed jobs, spool and log."""
        drop_superseded(self._connection)
        redact_failed_jobs(self._connection, not self._is_our_server)
        count_executed(self._connection)
        brought_back = reconcile(self._connection, not self._is_our_server)
        if brought_back:
            logger.warning("brought back %d jobs that were in no list", brought_back)
        self._set_torn_files_aside()
        self._remove_spare_folder()
        self._rotate_hook_log()

    def rewrite_aof_at_end(self) -> None:
        """Rewrite the append-only file, so that it no longer has the text of finished jobs."""
        try:
            if self._is_our_server:
                self._wait_for_rewrite()  # a rewrite in progress keeps jobs that just finished
                self._connection.bgrewriteaof()
                self._wait_for_rewrite()
        except RedisError as error:
            logger.warning("append-only file not rewritten: %s", error)

    def _rewrite_aof_when_quiet(self, now: float) -> None:
        """Rewrite the append-only file when no job waits, to remove the text of finished jobs."""
        if not self._is_our_server:
            return
        accepted = self.accepted()
        if accepted == self._accepted_at_rewrite or not self.nothing_waits():
            self._quiet_since = 0.0
            return
        self._quiet_since = self._quiet_since or now
        if now - self._quiet_since < QUIET_SECS or now - self._rewritten_at < REWRITE_EVERY_SECS:
            return
        try:
            self._connection.bgrewriteaof()
        except ResponseError:  # a rewrite is running
            return
        self._accepted_at_rewrite, self._rewritten_at = accepted, now

    def accepted(self) -> int:
        """Return the number of jobs ever accepted, without periodic jobs."""
        return int(self._connection.get(ACCEPTED_KEY) or 0)

    def nothing_waits(self) -> bool:
        """Tell whether no job waits, runs or is scheduled, apart from periodic jobs."""
        some = self._connection.pipeline()
        for queue in ALL_QUEUES:
            some.lrange(f"rq:queue:{queue}", 0, MOST_PERIODIC)
            some.zrange(f"rq:wip:{queue}", 0, MOST_PERIODIC)
            some.zrange(f"rq:scheduled:{queue}", 0, MOST_PERIODIC)
        members = [member for found in some.execute() for member in found]
        ids = (member.decode("utf-8", "replace").partition(":")[0] for member in members)
        return all(is_periodic_id(id) for id in ids)

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
        """Remove the spare spool folder in memory if it is empty. Hooks create it when needed."""
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
