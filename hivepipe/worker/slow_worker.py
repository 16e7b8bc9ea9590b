"""The workers of `slow` and `llm`, which execute one job at a time and renew its lease.

The stack runs workers/slow.py, and the Procfile runs the same worker with RQ's command line:

    python -I -m hivepipe.rq worker -w hivepipe.worker.slow_worker.SlowWorker slow

    turn      claim -> read -> execute -> acknowledge, retry, fail, put back

These workers write their results in short transactions, so that the writer does not wait for slow
work. `llm_queue` decides which of them serves `llm`.
"""

import logging
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import redis

from hivepipe import settings
from hivepipe.config.config_file import renewed
from hivepipe.errors import (
    NO_MEMORY,
    BadEnvelopeError,
    JobError,
    OperationFailedError,
    StoppedError,
    TryLaterError,
    is_out_of_memory,
    reason_of,
)
from hivepipe.jobs import retry
from hivepipe.jobs.envelope import Envelope, redacted
from hivepipe.jobs.process_log import about_job
from hivepipe.operations.declared import load
from hivepipe.operations.follow_up import follow_up_job
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.session_export import SessionExport
from hivepipe.operations.skill_exports import SkillExports
from hivepipe.operations.slow import execute_slow
from hivepipe.queue import client
from hivepipe.queue.claims import LEASE_SECS, Claimed
from hivepipe.queue.full_memory import unless_full
from hivepipe.queue.job_data import envelope_text, read_claimed
from hivepipe.queue.names import LLM, SLOW
from hivepipe.stack import shared_page
from hivepipe.stack.runtime_folder import runtime_for
from hivepipe.stack.wanted import set_wanted
from hivepipe.summaries import consent
from hivepipe.team import capture, membership
from hivepipe.team.connection import is_installed
from hivepipe.worker.claiming_worker import ClaimingWorker, is_away
from hivepipe.worker.llm_queue import LlmQueue
from hivepipe.worker.own_process import stop_signals_blocked
from hivepipe.worker.status_line_file import StatusLineFile

UPLINK = "uplink"
RENEW_SECS = min(LEASE_SECS / 4, 5.0)  # RQ's registration of a worker expires after 20 s

logger = logging.getLogger("hivepipe.slow")


class SlowWorker(ClaimingWorker):
    """Executes archiving, exports and other work on files."""

    role = SLOW
    own_queues = (SLOW,)
    wake_up_key = f"hivepipe:bell:{SLOW}"
    places = 1
    _served: tuple[str, ...] = (SLOW,)

    def queue_names(self) -> list[str]:
        return list(self._served)

    def request_stop(self, signum: int, frame: Any) -> None:
        """Stop when the current job can be interrupted; a later kill is not blamed on the job."""
        self._crash_marker.record("")
        super().request_stop(signum, frame)

    def _open(self) -> None:
        self._set_up_context(SLOW, LLM)
        self._settings = settings.in_use()
        self._llm_queue = LlmQueue(self._home)
        self._exports = SkillExports(self._home)
        self._session = SessionExport(self._home)
        self._status_line = StatusLineFile(self._home)
        self._beside_jobs("capture", partial(capture.stop_without_team, self._home))

    def _set_up_context(self, *queues: str) -> None:
        load(*queues)
        follow_up = partial(follow_up_job, self._home, self.connection, self._address)
        self._job_context = JobContext(self._home, self._address, follow_up, self._should_stop)

    def _on_heartbeat(self) -> None:
        """Switch on-demand programs on or off; serve `llm`, too, while no llm worker runs."""
        settings.use(renewed(self._home, self._settings))
        is_enabled = consent.is_enabled(self._home)
        runtime = runtime_for(self._home)
        set_wanted(runtime, LLM, is_enabled)
        set_wanted(runtime, UPLINK, membership.is_joined() and is_installed())
        has_page = shared_page.is_enabled() and shared_page.is_installed()
        set_wanted(runtime, shared_page.PROGRAM, has_page, shared_page.lock_path())
        serves_llm = self._llm_queue.acquire_or_release(is_enabled)
        self._serve((SLOW, LLM) if serves_llm else (SLOW,))

    def _serve(self, queues: tuple[str, ...]) -> None:
        """Claim from these queues. After a change, first put back a dead worker's claimed jobs."""
        if queues != self._served:
            self._served = queues
            self._claims.serve(queues)
            self._recovered_at = -math.inf
            with unless_full():
                self.connection.hset(self.key, "queues", ",".join(queues))

    def _tidy(self) -> None:
        """Update the exports and the status line file, between two jobs."""
        self._beside_jobs("skill exports", self._exports.tidy)
        self._beside_jobs("session.yaml", self._session.tidy)
        self._beside_jobs("status line", self._status_line.tidy)

    def _before_leaving(self) -> None:
        self._beside_jobs("skill exports", self._exports.finish)
        self._beside_jobs("session.yaml", self._session.finish)

    def _prepare_claim(self) -> bool:
        self._tidy()
        return False

    def _execute(self, claimed: list[Claimed]) -> None:
        for job in claimed:
            self._execute_one(job)
            about_job()

    def _execute_one(self, job: Claimed) -> None:
        """Acknowledge, retry, fail or put back the job."""
        about_job(job.id)
        try:
            envelope = read_claimed(job)
        except BadEnvelopeError as error:
            logger.error("failed job %s: %s", job.id, error)
            self._claims.fail([(job, str(error), job.data, "unreadable")])
            return
        about_job(job.id, envelope.operation, envelope.session)
        try:
            with self._leased(job):
                execute_slow(self._job_context, envelope)
        except StoppedError:
            self._claims.put_back(job)
        except TryLaterError as error:
            self._retry(job, envelope, error, error.delay_secs)
        except OperationFailedError as error:
            delay = retry.operation_delay_secs(job.failures + 1, error.retries)
            self._retry(job, envelope, error, delay)
        except JobError as error:
            self._fail(job, envelope, error)
        except Exception as error:  # a handler's bug must not stop the others
            if _is_of_environment(error):
                self._environment_failed(job, envelope, error)
            elif is_away(error):
                raise
            else:
                logger.exception("handler of %s", envelope.operation)
                self._fail(job, envelope, error)
        else:
            self._claims.acknowledge([(job, envelope.operation)])
            self._environment_works()

    def _should_stop(self) -> bool:
        return bool(self._stop_requested)

    @contextmanager
    def _leased(self, job: Claimed) -> Iterator[None]:
        """Renew the job's lease and the worker's heartbeat while the job runs."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(RENEW_SECS):
                with suppress(redis.RedisError):
                    self._claims.renew(job)
                    self.heartbeat()

        thread = threading.Thread(target=renew, daemon=True)
        with stop_signals_blocked():
            thread.start()
        self._crash_marker.record(job.id)
        try:
            yield
        finally:
            self._crash_marker.record("")
            ended.set()
            thread.join()

    def _environment_failed(self, job: Claimed, envelope: Envelope, error: Exception) -> None:
        """Retry the job after an error of a file, a disk, the database, Redis or memory.

        If the error is not one of a disk or database, the job fails after its last retry.
        """
        is_limited = isinstance(error, OSError) and error.errno not in retry.DISK_ERRORS
        is_disk_error = not is_limited and not is_out_of_memory(error)
        failures = job.attempts if is_disk_error else job.failures
        delay = retry.file_delay_secs(failures + 1, is_disk_error)
        self._retry(job, envelope, error, delay, held_up=is_disk_error)
        self._is_held_up = self._is_held_up or is_disk_error

    def _retry(
        self,
        job: Claimed,
        envelope: Envelope,
        error: Exception,
        delay: float | None,
        *,
        held_up: bool = False,
    ) -> None:
        """Retry the job after `delay` s, or fail it if `delay` is None; see `Claims.retry`."""
        if delay is None:
            self._fail(job, envelope, error)
            return
        text = NO_MEMORY if is_out_of_memory(error) else error
        logger.warning("%s again in %.0f s: %s", envelope.operation, delay, text)
        self._claims.retry([(job, job.queue, delay)], held_up=held_up)

    def _fail(self, job: Claimed, envelope: Envelope, error: Exception) -> None:
        reason = reason_of(error)
        logger.error("failed job %s: %s: %s", job.id, envelope.operation, reason)
        data = client.job_data(redacted(envelope_text(job.data)))
        self._claims.fail([(job, reason, data, envelope.operation)])


def _is_of_environment(error: Exception) -> bool:
    """Tell whether the machine, the database or Redis failed and not the job."""
    is_refused = isinstance(error, OSError | client.RefusedError)
    return is_refused or retry.is_store_error(error) or is_out_of_memory(error)


class LlmWorker(SlowWorker):
    """Executes jobs that call a language model."""

    role = LLM
    own_queues = (LLM,)
    wake_up_key = f"hivepipe:bell:{LLM}"
    _served = (LLM,)

    def _open(self) -> None:
        self._set_up_context(LLM)
        self._settings = settings.in_use()
        self._llm_queue = LlmQueue(self._home)

    def _is_ready(self) -> bool:
        """Tell whether the slow worker has released the queue `llm`."""
        return self._llm_queue.acquire()

    def _on_heartbeat(self) -> None:
        """Do nothing, because the slow worker decides which worker serves the queue `llm`."""

    def _execute_one(self, job: Claimed) -> None:
        """Execute a job with the current settings, which are read again before each job."""
        settings.use(renewed(self._home, self._settings))
        super()._execute_one(job)

    def _tidy(self) -> None:
        """Do nothing, because the slow worker writes the exports."""

    def _before_leaving(self) -> None:
        """Do nothing, because the slow worker writes the exports."""
