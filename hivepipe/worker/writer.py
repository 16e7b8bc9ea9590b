"""The writer, which claims many jobs at a time and commits and acknowledges them together.

The stack runs workers/writer.py, and the Procfile runs the same worker with RQ's command line:

    python -I -m hivepipe.rq worker -w hivepipe.worker.writer.Writer high medium low

    turn      spool -> claim -> read -> commit -> acknowledge, retry, fail
                                    '-> move slow jobs, enqueue the jobs of ticks

A job is committed before it is acknowledged. After a kill between the two, the job is executed
again, and the table `applied` prevents a second effect.
"""

import contextlib
import logging
import math
import sqlite3
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import redis

from hivepipe import settings
from hivepipe.db.clock_set_back import ClockSteps
from hivepipe.db.database import SHORT_TIMEOUT_SECS, Database, open_database
from hivepipe.db.tree import refuse_replaced
from hivepipe.errors import (
    BadEnvelopeError,
    MissingParentError,
    StoreError,
    TreeError,
    is_out_of_memory,
    reason_of,
)
from hivepipe.events.job_plan import queue_of, utc
from hivepipe.files.file_size import with_limit
from hivepipe.guard.shared_root import check_shared_root
from hivepipe.jobs import retry
from hivepipe.jobs.args import HERE
from hivepipe.jobs.envelope import Envelope, redacted
from hivepipe.jobs.process_log import about_job
from hivepipe.jobs.schedule_table import CLEANUP, TICK, job_of
from hivepipe.operations.briefing_files import BriefingFiles
from hivepipe.operations.declared import load, slow_queue
from hivepipe.operations.follow_up import follow_up_job
from hivepipe.operations.heartbeats import Heartbeats
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.late_notes import replay_notes
from hivepipe.operations.registry import cleanup_cause
from hivepipe.operations.slots import job_due
from hivepipe.operations.slow import execute_slow
from hivepipe.queue import client, endpoint, lost_events, ticks
from hivepipe.queue.aof_sync import AofSync
from hivepipe.queue.claims import CLOCK_EVERY_SECS, TROUBLE_KEY, Claimed
from hivepipe.queue.enqueue import enqueue
from hivepipe.queue.full_memory import is_full, unless_full
from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.queue.job_data import envelope_text, read_claimed
from hivepipe.queue.names import QUEUES
from hivepipe.stack import kernel, other_redis
from hivepipe.stack.idle_policy import ask_to_shut_down, may_shut_down, shut_down
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.wake_up import WakeUp
from hivepipe.worker.claiming_worker import ClaimingWorker, is_away
from hivepipe.worker.custom_jobs import enqueue_custom
from hivepipe.worker.group_commit import commit_batch
from hivepipe.worker.idle_shutdown import IdleWatch
from hivepipe.worker.own_process import stop_signals_blocked

LAST_PLACES = 100  # maximum number of jobs in the last claim, after SIGTERM
SHRINK_EVERY_SECS = 60.0
TRY_EVERY_SECS = 1.0
LARGE_LOG_BYTES = 1_000_000

logger = logging.getLogger("hivepipe.writer")
load(None, HERE)


class Writer(ClaimingWorker):
    """Executes the jobs of the queues high, medium and low."""

    role = "writer"
    own_queues = QUEUES
    wake_up_key = "hivepipe:bell"
    places = 200

    def _open(self) -> None:
        self._db: Database | None = None
        self._could_open = False
        self._clock_steps = ClockSteps()
        self._shrunk_at = self._tried_at = -math.inf
        self._trouble: str | None = None  # unknown, because an earlier writer may have set it
        self._heartbeats = Heartbeats(self.connection)
        self._briefings = BriefingFiles(self._home)
        self._housekeeper = Housekeeper(self.connection, Path(self._home), self._address)
        self._stack = Stack.prepared(self._home)
        # With a remote Redis, the forwarder binds the socket.
        is_local = self._stack.url and endpoint.is_local(self._stack.url)
        self._wake_up = WakeUp(self._stack.folder) if is_local else None
        self._idle = IdleWatch(self._home, self._housekeeper)
        with contextlib.suppress(OSError):
            check_shared_root(self._home)
            lost_events.prepare(self._home)
        follow_up = partial(follow_up_job, self._home, self.connection, self._address)
        self._job_context = JobContext(self._home, self._address, follow_up)
        self._aof_sync = AofSync(Path(self._home))
        with stop_signals_blocked():
            self._aof_sync.start()

    def _loop(self, burst: bool) -> None:
        super()._loop(burst)
        if not burst:
            with contextlib.suppress(redis.RedisError, client.RefusedError):
                self._turn(LAST_PLACES)

    def _before_rest(self) -> None:
        self._beside_jobs("housekeeping", self._housekeeper.tidy)
        self._shrink_if_due()
        self._beside_jobs("idle shutdown", self._end_stack_if_idle)

    def _shrink_if_due(self) -> None:
        """Shrink the database if its write-ahead log is large; check every SHRINK_EVERY_SECS."""
        now = time.monotonic()
        if self._db is None or now - self._shrunk_at < SHRINK_EVERY_SECS:
            return
        self._shrunk_at = now
        with contextlib.suppress(sqlite3.Error, OSError):  # the database is busy; retry later
            if self._db.log_bytes() > LARGE_LOG_BYTES:
                self._db.shrink()

    def _end_stack_if_idle(self) -> None:
        """Stop an idle stack that a hook started. The next hook starts it again."""
        if self._db is None or not may_shut_down(self._stack):
            return
        idle_secs = self._idle.idle_secs(self._db)
        if idle_secs >= settings.number("HIVEPIPE_IDLE_SECS") and shut_down(self._stack):
            logger.info("no work for %.0f s: shutting the stack down", idle_secs)
            self._stop_requested = True

    def _on_heartbeat(self) -> None:
        if not kernel.touch(self._home):
            logger.error("another machine or container uses this home now: shutting the stack down")
            self._stop_requested = ask_to_shut_down(self._stack)
        if self._stack.url:
            other_redis.restore_owner_key(self.connection, self._home)

    def _on_clock_set_back(self, secs: float) -> None:
        # The time of a claim is recorded only every CLOCK_EVERY_SECS, so the step may be larger.
        self._clock_steps.note(int((secs + CLOCK_EVERY_SECS) * 1e9))
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):  # the next commit tries again
                self._clock_steps.correct(self._db)

    def _before_leaving(self) -> None:
        if self._db is not None:
            self._heartbeats.flush(self._db)
        self._housekeeper.rewrite_aof_at_end()

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()  # closing the last connection checkpoints the write-ahead log
        self._aof_sync.stop()
        if self._wake_up:
            self._wake_up.close()

    def _is_ready(self) -> bool:
        db = self._database()
        now = time.monotonic()
        if db is not None and self._is_held_up and now - self._tried_at >= TRY_EVERY_SECS:
            self._tried_at = now
            self._try_to_write(db)
        return db is not None

    def _try_to_write(self, db: Database) -> None:
        """If the store can be written, clear its trouble and make due the jobs that waited."""
        try:
            db.try_to_write()
        except sqlite3.Error:
            return
        self._set_trouble("")
        self._environment_works()

    def _prepare_claim(self) -> bool:
        """Process call notes, activity and spool, which are older than the queued jobs.

        Return True if events were moved from the spool, because more may wait there.
        """
        with unless_full():
            self._beside_jobs("call notes", partial(replay_notes, self.connection, self._home))
        if self._db is not None:
            with unless_full():
                self._beside_jobs("activity", partial(self._heartbeats.flush_if_due, self._db))
            self._beside_jobs("briefings", partial(self._briefings.refresh_if_due, self._db))
        with unless_full():
            return bool(self._housekeeper.drain())
        return False

    def _execute(self, claimed: list[Claimed]) -> None:
        """Commit the jobs' writes; acknowledge, retry, fail or move every claimed job."""
        batch = _sorted(claimed)
        self._claims.move(batch.long)
        self._commit(batch)
        for job, envelope in batch.short:
            self._execute_here(job, envelope, batch.dead)
        self._claims.fail(batch.dead)
        # Slots come last, because a full Redis accepts new jobs only after others are finished.
        self._open_slots(batch.ticks)

    def _commit(self, batch: "_Batch") -> None:
        jobs = batch.writes
        if not jobs:
            return
        try:
            db = self._db
            if db is None:
                raise sqlite3.OperationalError("the database is not open")
            self._clock_steps.correct(db)
            outcome = commit_batch(
                db, [envelope for _, envelope in jobs], self._crash_marker.record
            )
        except sqlite3.DatabaseError as error:
            self._store_failed(jobs, error)
            return
        self._set_trouble("")
        done = [jobs[index] for index in outcome.committed]
        kept = [pair for pair in done if enqueue_custom(self._job_context, pair[1])]
        # Other jobs stay claimed, and are put back and executed again after RECOVER_EVERY_SECS.
        self._claims.acknowledge([(job, envelope.operation) for job, envelope in kept])
        causes = filter(None, (cleanup_cause(envelope) for _, envelope in kept))
        if cause := next(causes, ""):
            self._heartbeats.make_due()
            with unless_full():
                ticks.trigger(self.connection, CLEANUP, cause)
        self._environment_works()
        self._log_late(kept)
        for index, reason in outcome.failed.items():
            self._job_failed(*jobs[index], reason, batch.dead)

    def _open_slots(self, due: list[tuple[Claimed, Envelope]]) -> None:
        """Enqueue the jobs of ticks, except for slots that are already executed."""
        if not due:
            return
        new = [job for _, tick in due if (job := job_due(self._db, tick))]
        enqueue(self.connection, self._address, new, is_periodic=True)
        now = utc(time.time_ns())
        ticks.finish(self.connection, [(tick.id, tick.queue) for tick, _ in due], now)

    def _execute_here(self, job: Claimed, envelope: Envelope, dead: list["_Dead"]) -> None:
        """Execute a short job that queries the system or Redis, outside of any transaction."""
        self._crash_marker.record(job.id)
        about_job(job.id, envelope.operation, envelope.session)
        try:
            execute_slow(self._job_context, envelope)
        except Exception as error:  # a handler's bug must not stop the others
            if is_full(error):
                delay = retry.store_delay_secs(job.attempts + 1)
                self._claims.retry([(job, job.queue, delay)], held_up=True)
            elif is_away(error):
                raise
            elif retry.is_store_error(error):
                self._store_failed([(job, envelope)], error)
            else:
                self._job_failed(job, envelope, error, dead)
        else:
            self._claims.acknowledge([(job, envelope.operation)])
        finally:
            self._crash_marker.record("")
            about_job()

    def _store_failed(self, jobs: list[tuple[Claimed, Envelope]], error: Exception) -> None:
        """Retry all jobs after a store error: nothing was written, and no job counts as failed."""
        self._crash_marker.record("")
        self._set_trouble(str(error))
        retries = []
        for job, envelope in jobs:
            attempts = job.attempts + 1
            queue = queue_of(retry.demoted(envelope.priority, attempts))
            retries.append((job, queue, retry.store_delay_secs(attempts)))
        self._claims.retry(retries, held_up=True)
        # A damaged table fails again, although a test write of another page succeeds.
        if isinstance(error, sqlite3.OperationalError | StoreError):
            self._is_held_up = True
        tries = Counter((envelope.operation, job.attempts + 1) for job, envelope in jobs)
        for (operation, attempt), count in tries.items():
            text = f"attempt {attempt}, {count} jobs" if count > 1 else f"attempt {attempt}"
            logger.warning("Database busy, will retry: %s (%s, %s)", operation, text, error)
        if "locked" not in str(error) and "busy" not in str(error) and self._db is not None:
            self._db.close()  # disk full, read-only or I/O error: reopen before the next claim
            self._db = None

    def _job_failed(
        self,
        job: Claimed,
        envelope: Envelope,
        error: Exception,
        dead: list["_Dead"],
    ) -> None:
        """Fail a job after its own error, or retry it while a parent or memory is missing."""
        delay = None
        reason = reason_of(error)
        if isinstance(error, MissingParentError):
            delay = retry.parent_delay_secs(job.failures + 1)
            reason = f"max retries exceeded: {error}"
        elif is_out_of_memory(error):
            delay = retry.file_delay_secs(job.failures + 1, is_disk_error=False)
        if delay is not None:
            queue = queue_of(retry.demoted(envelope.priority, job.attempts + 1))
            self._claims.retry([(job, queue, delay)])
            return
        about_job(job.id, envelope.operation, envelope.session)
        logger.error("failed job %s: %s: %s", job.id, envelope.operation, reason)
        about_job()
        # The text of a failed job is kept, so it is redacted like texts in the store.
        data = client.job_data(redacted(envelope_text(job.data)))
        dead.append((job, reason, data, envelope.operation))

    def _log_late(self, done: list[tuple[Claimed, Envelope]]) -> None:
        now_ns = time.time_ns()
        for job, envelope in done:
            if job.attempts:
                age_secs = (now_ns - envelope.event_time_ns) / 1e9
                about_job(job.id, envelope.operation, envelope.session)
                logger.info("Completed: %s (age: %.1fs)", envelope.operation, age_secs)
        about_job()

    def _database(self) -> Database | None:
        """Return the open database, or None if it cannot be opened (then no job is claimed)."""
        if self._db is None:
            try:
                refuse_replaced(self._home)
                opened = open_database(self._home, SHORT_TIMEOUT_SECS)
            except (OSError, StoreError, TreeError, sqlite3.Error) as error:
                self._could_open, self._is_held_up = False, True
                self._log_once_a_minute("store", str(error))
                self._set_trouble(str(error))
                return None
            # After an error of a commit, only the next commit shows that the store works again.
            if not self._could_open:
                self._set_trouble("")
            self._db, self._could_open = opened, True
        return self._db

    def _set_trouble(self, reason: str) -> None:
        """Note in Redis why and since when the store fails; "" deletes this note."""
        reason = reason and with_limit(reason)
        if reason and not self._trouble:
            with self.connection.pipeline() as both:  # both commands in one transaction
                both.hsetnx(TROUBLE_KEY, "since", str(time.time()))
                both.hset(TROUBLE_KEY, "reason", reason)
                both.execute()
        elif self._trouble != "" and not reason:
            self.connection.delete(TROUBLE_KEY)
        self._trouble = reason


_Dead = tuple[Claimed, str, bytes, str]


@dataclass
class _Batch:
    """The jobs of one claim, grouped by the way in which they are processed."""

    writes: list[tuple[Claimed, Envelope]] = field(default_factory=list)
    ticks: list[tuple[Claimed, Envelope]] = field(default_factory=list)
    short: list[tuple[Claimed, Envelope]] = field(default_factory=list)
    long: list[tuple[Claimed, str, float]] = field(default_factory=list)
    dead: list[_Dead] = field(default_factory=list)


def _sorted(claimed: list[Claimed]) -> _Batch:
    batch = _Batch()
    for job in claimed:
        try:
            envelope = read_claimed(job)
            if envelope.operation == TICK:
                job_of(envelope)
        except BadEnvelopeError as error:
            logger.error("failed job %s: %s", job.id, error)
            batch.dead.append((job, str(error), job.data, "unreadable"))
            continue
        queue = slow_queue(envelope.operation)
        if envelope.operation == TICK:
            batch.ticks.append((job, envelope))
        elif queue is None:
            batch.writes.append((job, envelope))
        elif queue == HERE:
            batch.short.append((job, envelope))
        else:
            batch.long.append((job, queue, envelope.settle_secs))
    return batch
