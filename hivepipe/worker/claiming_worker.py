"""The base class of hivepipe's workers: one process per role and home.

    turn      claim -> execute -> acknowledge, retry, fail    each worker defines `_execute`
    idle      block on the wake-up list, at most a second

A worker holds <role>.lock as long as it runs. So jobs that are already claimed when a worker starts
belong to a dead worker. Such jobs are put back at once.
"""

import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar

import redis
from rq import Queue, SimpleWorker
from rq.worker import WorkerStatus

from hivepipe.errors import LockHeldError, is_out_of_memory, reason_of
from hivepipe.files.regular_file import is_open_as
from hivepipe.home import locate
from hivepipe.hook.autostart import start_stack
from hivepipe.jobs.retry import is_store_error
from hivepipe.queue import client
from hivepipe.queue.claims import Claim, Claimed, Claims
from hivepipe.queue.connection import connect
from hivepipe.queue.full_memory import FULL, unless_full
from hivepipe.queue.rq_workers import ROLE_FIELD
from hivepipe.redact.configured import use_rules
from hivepipe.stack.installed import installed
from hivepipe.stack.lock import acquire_lock
from hivepipe.stack.parent_death import is_child_of_supervisor
from hivepipe.stack.runtime_folder import Stack, runtime_for
from hivepipe.text.plurals import counted
from hivepipe.worker.crash_marker import CrashMarker
from hivepipe.worker.own_process import LOCK_WAIT_SECS, STOP_SIGNALS, begin, stop_signals_blocked

LONGEST_WAIT_SECS = 1.0
HEARTBEAT_SECS = 5.0
WORKER_TTL_SECS = 20
RECOVER_EVERY_SECS = 30.0
REDIS_AWAY_SECS = (0.05, 0.1, 0.2, 0.5, 1.0)
# Errors of a server that refuses all writes: its disk or memory is full, it is a replica or has
# just become one, it is a primary without replicas, or another client's script runs too long.
REFUSES_WRITES = (
    *("MISCONF", FULL, "read only replica", "MASTER is down", "UNBLOCKED", "NOREPLICAS"),
    "is busy running a script",
)

logger = logging.getLogger("hivepipe.worker")


class WokenError(Exception):
    """A signal has ended the wait. The error is raised only while no reply of Redis can be lost."""


class ClaimingWorker(SimpleWorker):
    """Executes the jobs of its queues; `work` has RQ's parameters."""

    role: ClassVar[str]  # name of the lock, the log and the crash marker
    own_queues: ClassVar[tuple[str, ...]]
    wake_up_key: ClassVar[str]
    places: ClassVar[int]  # maximum number of jobs per claim

    def __init__(self, queues: Any, name: str | None = None, **options: Any) -> None:
        """Set the name that `rq info` shows. Nothing is sent to Redis yet."""
        own_name = f"{self.role}.{socket.gethostname()}.{os.getpid()}"
        options |= {"worker_ttl": WORKER_TTL_SECS}  # RQ's command line says 420
        super().__init__(queues, name=name or own_name, **options)

    def work(  # type: ignore[override]
        self, burst: bool = False, logging_level: str | None = None, **_: Any
    ) -> bool:
        """Work until a stop request, or in burst mode until idle; return whether a job ran.

        The settings are read once, here. Raise LockHeldError if the home already has a worker of
        this role.
        """
        place, config = begin(self.role)  # the home's settings, also under RQ's command line
        for problem in config.problems:
            logger.warning("%s; left out", problem)
        # The connection of RQ's command line retries commands, so a claim might be made twice.
        self.connection = self._set_connection(connect(place.socket))
        runtime = runtime_for(place.home)
        self._lock_path = f"{runtime}/{self.role}.lock"
        self._lock = acquire_lock(self._lock_path, LOCK_WAIT_SECS)
        self._home, self._address = place.home, place.socket
        self._is_supervised = Stack.of(place).supervises_this_process()
        self._crash_marker = CrashMarker(f"{runtime}/{self.role}.job")
        self._beat_at = -math.inf
        self._logged_at: dict[str, float] = {}
        self._version = installed()
        is_orphan = self._is_supervised and not is_child_of_supervisor(Stack.of(place))
        self._parent = 0 if is_orphan else os.getppid()
        self._worked = False
        self._is_held_up = True  # an earlier worker may have left jobs with `held_up`
        self._is_busy = False
        self._is_resting = False
        for number in STOP_SIGNALS:
            signal.signal(number, self.request_stop)
        self._register(logging_level)
        problem = use_rules(place.home)
        if problem:
            logger.error("%s; the built-in rules are in force", problem)
        self._open()
        try:
            self._loop(burst)
        finally:
            self._end_registration()
            self._close()
        return self._worked

    def request_stop(self, signum: int, frame: Any) -> None:
        """Stop after the current job, or now if the worker waits: then raise WokenError."""
        self._stop_requested = True  # RQ's own handler would raise an exception during a job
        if self._is_resting:
            self._is_resting = False
            raise WokenError

    # ---- methods of each worker

    def _open(self) -> None:
        """Prepare to work. Redis may not answer yet."""

    def _is_ready(self) -> bool:
        """Tell whether jobs can be executed; if not, no job is claimed."""
        return True

    def _prepare_claim(self) -> bool:
        """Do the work that precedes a claim. Return True if work remains and no job is claimed."""
        return False

    def _execute(self, claimed: list[Claimed]) -> None:
        """Acknowledge, retry, fail, move or put back every claimed job."""
        raise NotImplementedError

    def _before_rest(self) -> None:
        """Do the work that is done only while the queues are empty."""

    def _on_heartbeat(self) -> None:
        """Do the work that is due every few seconds, whether jobs wait or not."""

    def _on_clock_set_back(self, secs: float) -> None:
        """Adjust stored times after the clock was set back by `secs`."""

    def _before_leaving(self) -> None:
        """Do the last work before the worker stops. A RedisError is logged."""

    def _close(self) -> None:
        """Release the resources that `_open` acquired."""

    # ---- shared methods

    def _set_ip_address(self, _connection: redis.Redis) -> None:
        # RQ would ask Redis, which may not answer, and a unix socket has no address.
        self.ip_address = "unknown"

    def _register(self, logging_level: str | None) -> None:
        for wait in (*REDIS_AWAY_SECS, *[1.0] * 30):
            try:
                self.bootstrap(logging_level or "WARNING")
                break
            except redis.RedisError as error:  # Redis may be starting at the same time
                if not is_away(error):
                    raise
                self._check_supervisor()
                if self._stop_requested or isinstance(error, redis.ResponseError):
                    break  # a heartbeat registers the worker when Redis accepts writes again
                time.sleep(wait)
        is_shared = not self._address.startswith("/")
        self._claims = Claims(self.connection, self.own_queues, self.name, self.key, is_shared)
        self._blamed = self._crash_marker.read()
        self._recovered_at = -math.inf  # the first turn puts back the jobs of a dead worker

    def register_birth(self) -> None:
        """Register in Redis, so that `rq info` shows the queues even before their first job.

        A worker that is already registered by this name is dead, because this process holds the
        lock of the role.
        """
        self.connection.delete(self.key)
        super().register_birth()  # type: ignore[no-untyped-call]
        self.connection.hset(self.key, ROLE_FIELD, self.role)
        self.connection.sadd("rq:queues", *[f"rq:queue:{name}" for name in self.own_queues])

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Send a heartbeat, or register again if the machine's sleep outlasted the registration."""
        with unless_full():
            if self.connection.hexists(self.key, "birth"):
                super().heartbeat(timeout, pipeline)
            else:
                self.register_birth()

    def subscribe(self) -> None:
        """Start RQ's thread for commands to this worker."""
        with stop_signals_blocked():
            super().subscribe()  # type: ignore[no-untyped-call]

    def _pubsub_exception_handler(self, exc: Exception, *thread: Any) -> None:
        """Let RQ's thread for commands connect again.

        RQ logs an error for each lost connection, also if a proxy has ended it because it was idle.
        """
        if not isinstance(exc, redis.ConnectionError):
            super()._pubsub_exception_handler(exc, *thread)
        text = f"the connection for RQ's commands was lost ({_reason(exc)}), again in 2 s"
        self._log_once_a_minute("commands", text)
        time.sleep(2)

    def unsubscribe(self) -> None:
        """End RQ's thread for commands to this worker.

        The thread checks for `stop` after each message. RQ calls `stop` only after the last
        message, so the thread would wait for another message.
        """
        if self.pubsub_thread:
            self.pubsub_thread.stop()
        super().unsubscribe()  # type: ignore[no-untyped-call]

    def set_state(self, state: str, pipeline: Any = None) -> None:
        """Show this state of the worker in `rq info`."""
        with unless_full():
            super().set_state(state, pipeline)

    def _end_registration(self) -> None:
        try:
            self._before_leaving()
            self.teardown()  # type: ignore[no-untyped-call]
        except redis.RedisError as error:
            logger.warning("could not unregister from Redis: %s", error)

    def _recover_if_due(self) -> None:
        """Put all claimed jobs back into their queues; no job is executed during this call.

        These jobs belong to a dead worker, or the reply to a claim or an acknowledgement was lost.
        """
        if time.monotonic() - self._recovered_at <= RECOVER_EVERY_SECS:
            return
        recovered = self._claims.recover(self._blamed)
        self._blamed = ""
        self._crash_marker.record("")
        if recovered:
            logger.warning("requeued %d jobs that no worker was executing", recovered)
        self._recovered_at = time.monotonic()

    def _loop(self, burst: bool) -> None:
        away = 0
        while not self._stop_requested:
            try:
                due = self._turn(self.places)
                away = 0
                if due == 0:
                    continue
                if burst:
                    return
                self._rest(due)
            except (redis.RedisError, client.RefusedError) as error:
                if not is_away(error):
                    raise
                wait = REDIS_AWAY_SECS[min(away, len(REDIS_AWAY_SECS) - 1)]
                logger.warning("Redis is away (%s), again in %s s", _reason(error), wait)
                time.sleep(wait)
                away += 1
                self._recovered_at = -math.inf
                # The host name of Redis may now resolve to another server.
                self.connection.connection_pool.disconnect(inuse_connections=False)
            except WokenError:
                continue

    def _turn(self, places: int) -> float:
        """Claim and execute up to `places` jobs; return the seconds until the next turn."""
        self._heartbeat_if_due()
        if not self._is_ready():
            return LONGEST_WAIT_SECS
        self._recover_if_due()
        if self._prepare_claim():
            return 0
        claim = self._claims.claim(places)
        self._warn_of_unclaimed(claim)
        if claim.set_back_secs:
            logger.warning("the clock was set back by %.0f s", claim.set_back_secs)
            self._on_clock_set_back(claim.set_back_secs)
        if not claim.jobs:
            return LONGEST_WAIT_SECS if claim.next_due_secs is None else claim.next_due_secs
        self._show_busy()
        self._execute(claim.jobs)
        return 0

    def _environment_works(self) -> None:
        """Make due the jobs that waited for a writable disk or database; both are writable now."""
        if self._is_held_up:
            with unless_full():
                self._claims.retry_now()
                self._is_held_up = False

    def _show_busy(self) -> None:
        """Show the worker as busy in `rq info`, until the next wait."""
        self._worked = True
        if not self._is_busy:
            self.set_state(WorkerStatus.BUSY)
            self._is_busy = True

    def _rest(self, secs: float) -> None:
        """Wait until the wake-up list has an entry, the next retry is due, or a second is over."""
        if self._is_busy:
            self.set_state(WorkerStatus.IDLE)
            self._is_busy = False
        self._before_rest()
        wait = min(secs, LONGEST_WAIT_SECS)
        self._is_resting = True
        try:
            if not self._stop_requested:
                self.connection.blpop([self.wake_up_key], timeout=max(wait, 0.01))
        finally:
            self._is_resting = False

    def _heartbeat_if_due(self) -> None:
        now = time.monotonic()
        if now - self._beat_at > HEARTBEAT_SECS:
            self._check_supervisor()  # before the heartbeat, because Redis ends with the supervisor
            self.heartbeat()
            self._beat_at = now
            self._beside_jobs("heartbeat", self._on_heartbeat)
            if installed() != self._version:
                logger.warning("hivepipe was upgraded: exiting to be restarted")
                self._stop_requested = True

    def _check_supervisor(self) -> None:
        """Start the stack again if its supervisor was killed and can no longer restart programs.

        The worker stops if the stack's folder was deleted, because the worker cannot be reached
        then. The worker also stops if another process has made the folder again, without this
        worker's lock or a socket.
        """
        if os.getppid() == self._parent:
            return
        place = locate(".")
        is_reachable = os.path.exists(Stack.of(place).supervisor_socket)
        if self._is_supervised and not (is_reachable and is_open_as(self._lock, self._lock_path)):
            logger.warning("the supervisor has ended and its folder was deleted: exiting")
            self._stop_requested = True
        elif is_reachable:
            self._log_once_a_minute("supervisor", "the supervisor has ended: restarting the stack")
            try:
                start_stack(place)
            except OSError as error:  # go on, because no supervisor would restart this worker
                logger.error("the stack is not started: %s", error.strerror)

    def _warn_of_unclaimed(self, claim: Claim) -> None:
        if claim.newer:
            self._log_once_a_minute("newer", "jobs of a newer hivepipe wait: upgrade this one")
        if claim.foreign:
            text = f"{counted(claim.foreign, 'job')} of another program in our queues"
            self._log_once_a_minute("foreign", text)

    def _beside_jobs(self, subject: str, work: Callable[[], object]) -> None:
        """Call `work`; log its error with `subject`, so that jobs go on. Raise if Redis is away."""
        try:
            work()
        except Exception as error:
            if is_away(error):
                raise
            is_lack = isinstance(error, OSError) or is_out_of_memory(error)
            is_bug = not is_lack and not is_store_error(error)
            text = f"{subject}: {reason_of(error)}"
            self._log_once_a_minute(subject, text, error if is_bug else None)

    def _log_once_a_minute(self, subject: str, text: str, bug: Exception | None = None) -> None:
        now = time.monotonic()
        if now - self._logged_at.get(subject, -math.inf) > 60:
            self._logged_at[subject] = now
            logger.warning("%s", text, exc_info=bug)


def is_away(error: Exception) -> bool:
    """Tell whether Redis does not answer, or refuses all writes."""
    if isinstance(error, redis.ResponseError):
        return any(word in str(error) for word in REFUSES_WRITES)
    return isinstance(error, redis.ConnectionError | redis.TimeoutError | client.RefusedError)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, redis.ResponseError) else type(error).__name__


def serve(worker_class: type[ClaimingWorker]) -> None:
    """Run a worker of the stack until SIGTERM. Exit with 75 if the home already has this worker."""
    connection = connect(locate(".").socket)
    queues = [Queue(name, connection=connection) for name in worker_class.own_queues]
    worker = worker_class(queues, connection=connection, prepare_for_work=True)
    try:
        worker.work()
    except LockHeldError as error:
        logger.error("%s", error)
        sys.exit(os.EX_TEMPFAIL)
