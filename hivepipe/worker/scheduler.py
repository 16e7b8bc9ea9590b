"""The scheduler: rq-scheduler, changed to run each slot once and to survive a lost Redis.

    cycle     hold the lock -> reconcile table and Redis -> enqueue due and triggered ticks
    between   sleep until the next tick, at most five seconds

Several schedulers can run. Only the holder of `rq:scheduler_lock` acts, and it renews the lock.
After a kill -9 the lock expires, and another scheduler acts.
"""

import logging
import math
import signal
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from redis import Redis
from redis.exceptions import RedisError
from rq.job import Job
from rq_scheduler.scheduler import Scheduler

from hivepipe.events.job_plan import ENVELOPE_VERSION
from hivepipe.jobs.schedule_table import TICK_QUEUE, Periodic, next_due, tick_id, tick_of
from hivepipe.operations.declared import PERIODIC
from hivepipe.queue import ticks
from hivepipe.queue.activity import has_activity
from hivepipe.queue.client import FUNCTION, TIMEOUT_SECS
from hivepipe.queue.rq_workers import living_roles, rq_workers
from hivepipe.queue.scripts import script
from hivepipe.queue.spooled import has_spooled
from hivepipe.queue.stock_jobs import has_due_retries
from hivepipe.stack.installed import installed
from hivepipe.worker.own_process import STOP_SIGNALS

LOCK_SECS = 20
LONGEST_WAIT_SECS = 5.0
SHORTEST_WAIT_SECS = 0.2
CLOCK_SLACK_SECS = 2.0
REDIS_STARTS_SECS = 5.0  # Redis may start at the same time as this process
ABSENT_SECS = 10.0  # until a periodic job replaces an absent worker, which may be starting

_HOLD = script("hold_lock")
_RELEASE = script("release_lock")

logger = logging.getLogger("hivepipe.scheduler")


class Tick(Job):
    """An RQ job with hivepipe's marker, without which the writer would not claim the job."""

    def to_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        return {**super().to_dict(*arguments, **keywords), "hp": ENVELOPE_VERSION}


class TickScheduler(Scheduler):  # type: ignore[misc]
    """Enqueues the ticks of the periodic operations in a table."""

    job_class = Tick

    def __init__(
        self, connection: Redis, rows: Sequence[Periodic] = PERIODIC, home: str = ""
    ) -> None:
        super().__init__(TICK_QUEUE, connection=connection, interval=LONGEST_WAIT_SECS)
        self.log.setLevel(logging.WARNING)  # at INFO, rq-scheduler logs each registration
        self._rows = rows
        self._home = home
        self._seen_at = {row.fallback_for: time.monotonic() for row in rows}
        self._stopped = threading.Event()
        self._version = installed()
        self._is_acting = False
        self._away = False
        self._began = time.monotonic()
        self._clock = (math.inf, math.inf)  # the time of day and the time since boot, read together

    def run(self, burst: bool = False) -> None:
        """Work until a stop request, or until another version of hivepipe is installed.

        In burst mode, work for one cycle. Errors of Redis are logged, and the next cycle tries
        again.
        """
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: self._stopped.set())
        is_born = False
        while not self._stopped.is_set() and installed() == self._version:
            try:
                if not is_born:
                    self.register_birth()
                    is_born = True
                wait = self._cycle()
                self._away = False
            except RedisError as error:
                wait = self._warn_away(error, is_born)
            if burst:
                break
            self._stopped.wait(wait)
        self._end_registration()

    # ---- one cycle

    def _cycle(self) -> float:
        """Enqueue the due ticks if this scheduler holds the lock; return the seconds to sleep."""
        self.heartbeat()
        if not self.acquire_lock():
            self._is_acting = False
            return LONGEST_WAIT_SECS
        due = ticks.due_times(self.connection)
        if not self._is_acting or any(tick_id(row.name) not in due for row in self._rows):
            self._reconcile()
            due = ticks.due_times(self.connection)
        self._follow_clock(due)
        now = time.time()
        rows = self._needed_rows()
        for row in rows:
            id = tick_id(row.name)
            if due[id] <= now and (
                not self._has_work(row, now) or ticks.fire(self.connection, row, now)
            ):
                due[id] = next_due(now, row.interval_secs)
        ticks.run_triggered(self.connection, self._rows, time.time_ns())
        first = min((due[tick_id(row.name)] for row in rows), default=math.inf)
        return min(max(first - time.time(), SHORTEST_WAIT_SECS), LONGEST_WAIT_SECS)

    def _needed_rows(self) -> list[Periodic]:
        """Return the operations whose `fallback_for` worker, if any, is not running or starting."""
        now = time.monotonic()
        self._seen_at |= dict.fromkeys(living_roles(rq_workers(self.connection)), now)
        return [
            row
            for row in self._rows
            if not row.fallback_for or now - self._seen_at[row.fallback_for] > ABSENT_SECS
        ]

    def _has_work(self, row: Periodic, now: float) -> bool:
        """Tell whether the operation has work; return True if this cannot be known in advance."""
        match row.operation:
            case "promote_retries":
                return has_due_retries(self.connection, now)
            case "drain_spool":
                return bool(self._home) and has_spooled(self._home)
            case "record_activity":
                return has_activity(self.connection)
        return True

    def _reconcile(self) -> None:
        """Make the ticks in Redis match the table of operations.

        A scheduler does this when it becomes active, and later if a tick is missing.
        """
        if not self._is_acting:
            logger.info("scheduler %s is active", self.name)
            self._is_acting = True
            self._clock = (math.inf, math.inf)
        for id in ticks.forget_others(self.connection, self._rows):
            logger.info("%s is no longer in the table", id)
        now = time.time()
        due = ticks.due_times(self.connection)
        for row in self._rows:
            at = due.get(tick_id(row.name))
            if ticks.known_interval(self.connection, row) != row.interval_secs:
                self._make(row, now)
            elif at is None or at > now + row.interval_secs:  # the clock was set back
                ticks.set_due(self.connection, row, now)

    def _make(self, row: Periodic, now: float) -> None:
        """Add a new tick, or a tick with a new interval, to rq-scheduler's set, due at once."""
        ticks.forget(self.connection, row)
        tick = tick_of(row, 0, int(now * 1e9))
        self.schedule(
            datetime.fromtimestamp(now, UTC),
            FUNCTION,
            args=(tick.envelope,),
            interval=row.interval_secs,
            result_ttl=-1,
            timeout=TIMEOUT_SECS,
            id=tick.id,
            description=tick.description,
            queue_name=TICK_QUEUE,
        )
        self.connection.hset(f"rq:job:{tick.id}", "hp_interval", row.interval_secs)

    def _follow_clock(self, due: dict[str, float]) -> None:
        """Move the due times back if the clock was set back.

        If the clock was set forward, all ticks are due, which costs only one extra run.
        """
        wall, since_boot = time.time(), time.monotonic()
        stepped = (wall - self._clock[0]) - (since_boot - self._clock[1])
        self._clock = (wall, since_boot)
        if math.isnan(stepped) or stepped > -CLOCK_SLACK_SECS:
            return
        logger.warning("the clock was set back by %.0f s", -stepped)
        for row in self._rows:
            due[tick_id(row.name)] += stepped
            ticks.set_due(self.connection, row, due[tick_id(row.name)])

    def _warn_away(self, error: RedisError, is_born: bool) -> float:
        """Log the first of successive errors; return the seconds to wait for Redis."""
        if not is_born and time.monotonic() - self._began < REDIS_STARTS_SECS:
            return SHORTEST_WAIT_SECS
        if not self._away:
            logger.warning("Redis is away (%s)", type(error).__name__)
        self._away = True
        return 1.0

    # ---- the lock

    def acquire_lock(self) -> bool:
        """Acquire or renew the lock; return whether this scheduler holds it.

        rq-scheduler's own lock would expire while its holder works.
        """
        held = self.connection.eval(_HOLD, 1, self.scheduler_lock_key, self.name, LOCK_SECS)
        self._lock_acquired = bool(held)
        return self._lock_acquired

    def remove_lock(self) -> None:
        """Release the lock if this scheduler holds it; rq-scheduler does not check that."""
        self.connection.eval(_RELEASE, 1, self.scheduler_lock_key, self.name)
        self._lock_acquired = False

    def _end_registration(self) -> None:
        try:
            self.remove_lock()
            self.register_death()
        except RedisError as error:
            logger.warning("could not unregister from Redis: %s", error)
