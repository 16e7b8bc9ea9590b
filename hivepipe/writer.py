"""The writer: claims many jobs at a time, commits them together, acknowledges them together.

`rq worker -w hivepipe.writer.Writer high medium low` runs it, and so does workers/writer.py. One
per home: it holds writer.lock for its whole life, so what an earlier writer had claimed when it
died is known to be nobody's, and comes back at once.

    turn      spool -> claim -> read -> commit -> acknowledge, retry, bury
    no turn   sleep on the bell, at most a second

A job is committed before it is acknowledged: a kill in between makes it come again, and the
table `applied` makes that harmless.
"""

import contextlib
import logging
import math
import signal
import sqlite3
import time
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import redis
from rq import SimpleWorker
from rq.worker import WorkerStatus

from hivepipe import retry
from hivepipe.black_box import BlackBox
from hivepipe.commit import commit_batch
from hivepipe.envelope import Envelope, read_envelope, redacted
from hivepipe.errors import BadEnvelopeError, MissingParentError, StoreError
from hivepipe.home import locate
from hivepipe.jobs import queue_of
from hivepipe.queues import client
from hivepipe.queues.aof_sync import AofSync
from hivepipe.queues.claims import TROUBLE_KEY, Claimed, Claims
from hivepipe.queues.housekeeping import Housekeeper
from hivepipe.queues.job_data import envelope_text
from hivepipe.stack.lock import runtime_for, take_lock
from hivepipe.store.database import Database
from hivepipe.store.location import database_path

PLACES = 200
LAST_PLACES = 100  # after SIGTERM: once more, and no more than this
BUSY_TIMEOUT_SECS = 0.1
LOCK_WAIT_SECS = 10.0
LONGEST_WAIT_SECS = 1.0
HEARTBEAT_SECS = 5.0
RECOVER_EVERY_SECS = 30.0
REDIS_AWAY_SECS = (0.05, 0.1, 0.2, 0.5, 1.0)

logger = logging.getLogger("hivepipe.writer")


class Writer(SimpleWorker):
    """Executes the jobs of high, medium and low; `work` has RQ's own parameters."""

    def work(  # type: ignore[override]
        self, burst: bool = False, logging_level: str | None = None, **_: Any
    ) -> bool:
        """Work until told to stop, in burst mode until nothing waits; return whether any job ran.

        LockHeldError: the home has a writer already.
        """
        place = locate(".")
        runtime = runtime_for(place.home)
        take_lock(f"{runtime}/writer.lock", LOCK_WAIT_SECS)
        self._home, self._address = place.home, place.socket
        self._box = BlackBox(f"{runtime}/writer.job")
        self._db: Database | None = None
        self._beat_at = self._said_at = -math.inf
        self._version = installed()
        self._worked = False
        self._trouble = ""
        self._is_busy = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.request_stop)
        aof_sync = AofSync(Path(place.home))
        aof_sync.start()
        self._start(logging_level)
        try:
            self._loop(burst)
        finally:
            self._leave()
            aof_sync.stop()
        return self._worked

    def request_stop(self, signum: int, frame: Any) -> None:
        """Stop after the batch at hand; RQ's own way raises in the middle of it."""
        self._stop_requested = True

    def _start(self, logging_level: str | None) -> None:
        for wait in (*REDIS_AWAY_SECS, *[1.0] * 30):
            try:
                self.bootstrap(logging_level or "WARNING")
                break
            except redis.ConnectionError:  # it is being started beside us
                if self._stop_requested:
                    break
                time.sleep(wait)
        self._claims = Claims(self.connection, self.name, self.key)
        self._housekeeper = Housekeeper(self.connection, Path(self._home), self._address)
        self._blamed = self._box.read()
        self._recovered_at = -math.inf  # the first turn takes back what a dead writer held

    def _leave(self) -> None:
        try:
            self._housekeeper.cleanse_at_end()
            self.teardown()  # type: ignore[no-untyped-call]
        except redis.RedisError as error:
            logger.warning("left without a word to Redis: %s", error)

    def _recover(self) -> None:
        """Take back what is claimed and not being executed: nothing is, whenever this is called.

        A dead writer held it; or the answer to a claim or an acknowledgement was lost.
        """
        recovered = self._claims.recover(self._blamed)
        self._blamed = ""
        self._box.record("")
        if recovered:
            logger.warning("took back %d jobs that nobody was executing", recovered)
        self._recovered_at = time.monotonic()

    def _loop(self, burst: bool) -> None:
        away = 0
        while not self._stop_requested:
            try:
                due = self._turn(PLACES)
                away = 0
                if due == 0:
                    continue
                if burst:
                    return
                self._rest(due)
            except (redis.ConnectionError, redis.TimeoutError, client.RefusedError) as error:
                wait = REDIS_AWAY_SECS[min(away, len(REDIS_AWAY_SECS) - 1)]
                logger.warning("Redis is away (%s), again in %s s", type(error).__name__, wait)
                time.sleep(wait)
                away += 1
                self._recovered_at = -math.inf
        if not burst:
            with contextlib.suppress(redis.RedisError, client.RefusedError):
                self._turn(LAST_PLACES)

    def _turn(self, places: int) -> float | None:
        """Claim and execute once; 0: there was work, else seconds until a retry is due, if any."""
        self._heartbeat_if_due()
        if self._database() is None:
            return LONGEST_WAIT_SECS
        if time.monotonic() - self._recovered_at > RECOVER_EVERY_SECS:
            self._recover()
        # Older events first: while any are on disk, nothing newer is claimed.
        if self._housekeeper.drain():
            return 0
        claim = self._claims.claim(places)
        if claim.newer:
            self._say_once_a_minute("jobs of a newer hivepipe wait: upgrade this one")
        if not claim.jobs:
            return claim.next_due_secs if claim.next_due_secs is not None else LONGEST_WAIT_SECS
        if not self._is_busy:
            self.set_state(WorkerStatus.BUSY)
            self._is_busy = True
        self._worked = True
        self._execute(claim.jobs)
        return 0

    def _execute(self, claimed: list[Claimed]) -> None:
        """Commit what can be committed; every claimed job is acknowledged, retried or buried."""
        jobs: list[tuple[Claimed, Envelope]] = []
        dead: list[tuple[Claimed, str, bytes, str]] = []
        for job in claimed:
            try:
                if not job.is_ours:
                    raise BadEnvelopeError("the job does not carry hivepipe's marker")
                jobs.append((job, read_envelope(envelope_text(job.data))))
            except BadEnvelopeError as error:
                logger.error("dead letter %s: %s", job.id, error)
                dead.append((job, str(error), job.data, "unreadable"))
        try:
            db = self._db
            if db is None:
                raise sqlite3.OperationalError("the database is not open")
            outcome = commit_batch(db, [envelope for _, envelope in jobs], self._box.record)
        except sqlite3.DatabaseError as error:
            self._store_failed(jobs, error)
        else:
            self._in_trouble("")
            self._claims.acknowledge(
                [(jobs[index][0], jobs[index][1].operation) for index in outcome.committed]
            )
            self._log_late(jobs, outcome.committed)
            for index, reason in outcome.failed.items():
                self._job_failed(*jobs[index], reason, dead)
        self._claims.bury(dead)

    def _store_failed(self, jobs: list[tuple[Claimed, Envelope]], error: Exception) -> None:
        """The store is at fault: nothing was written, and no job ever dies of it."""
        self._box.record("")
        self._in_trouble(str(error))
        comeback = []
        for job, envelope in jobs:
            attempts = job.attempts + 1
            queue = queue_of(retry.demoted(envelope.priority, attempts))
            comeback.append((job, queue, retry.store_delay_secs(attempts)))
        self._claims.retry(comeback)
        for operation, count in Counter(envelope.operation for _, envelope in jobs).items():
            logger.warning("Database busy, will retry: %s (%d, %s)", operation, count, error)
        if "locked" not in str(error) and "busy" not in str(error) and self._db is not None:
            self._db.close()  # full, read-only, I/O error: opened anew before the next claim
            self._db = None

    def _job_failed(
        self,
        job: Claimed,
        envelope: Envelope,
        error: Exception,
        dead: list[tuple[Claimed, str, bytes, str]],
    ) -> None:
        """The job is at fault: dead, unless the parent it misses may be on its way."""
        attempts = job.attempts + 1
        delay = None
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, MissingParentError):
            delay = retry.parent_delay_secs(attempts)
            reason = f"max retries exceeded: {error}"
        if delay is not None:
            queue = queue_of(retry.demoted(envelope.priority, attempts))
            self._claims.retry([(job, queue, delay)])
            return
        logger.error("dead letter %s: %s: %s", job.id, envelope.operation, reason)
        # A dead letter stays: it is stored text, and keeps what the store would have kept.
        data = client.job_data(redacted(envelope_text(job.data)))
        dead.append((job, reason, data, envelope.operation))

    def _log_late(self, jobs: list[tuple[Claimed, Envelope]], committed: list[int]) -> None:
        now_ns = time.time_ns()
        for index in committed:
            job, envelope = jobs[index]
            if job.attempts:
                age_secs = (now_ns - envelope.event_time_ns) / 1e9
                logger.info("Completed: %s (age: %.1fs)", envelope.operation, age_secs)

    def _database(self) -> Database | None:
        """Return the open database; None while it cannot be opened, and then nothing is claimed."""
        if self._db is None:
            try:
                self._db = Database(database_path(self._home), BUSY_TIMEOUT_SECS)
                self._in_trouble("")
            except (StoreError, sqlite3.Error) as error:
                self._say_once_a_minute(str(error))
                self._in_trouble(str(error))
        return self._db

    def _in_trouble(self, reason: str) -> None:
        """Let `status` know that the store does not answer, and since when; "": it does again."""
        if reason and not self._trouble:
            self.connection.hset(TROUBLE_KEY, mapping={"since": time.time(), "reason": reason})
        elif self._trouble and not reason:
            self.connection.delete(TROUBLE_KEY)
        self._trouble = reason

    def _rest(self, secs: float | None) -> None:
        """Sleep until the bell, the next retry, or a second has passed."""
        if self._is_busy:
            self.set_state(WorkerStatus.IDLE)
            self._is_busy = False
        self._housekeeper.tidy()
        wait = min(secs or LONGEST_WAIT_SECS, LONGEST_WAIT_SECS)
        self.connection.blpop(["hivepipe:bell"], timeout=max(wait, 0.01))

    def _heartbeat_if_due(self) -> None:
        now = time.monotonic()
        if now - self._beat_at > HEARTBEAT_SECS:
            self.heartbeat()
            self._beat_at = now
            if installed() != self._version:
                logger.warning("hivepipe was upgraded: leaving, to be started anew")
                self._stop_requested = True

    def _say_once_a_minute(self, text: str) -> None:
        now = time.monotonic()
        if now - self._said_at > 60:
            self._said_at = now
            logger.warning("%s", text)


def installed() -> str:
    """Return the version on disk, which an upgrade changes under a running process."""
    try:
        return version("hivepipe")
    except PackageNotFoundError:  # in the middle of the upgrade
        return ""
