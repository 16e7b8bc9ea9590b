"""Claim, acknowledge, retry and fail jobs.

Each step is one script that changes all keys, so that a job is always in a queue or a registry. A
stock worker on several queues pops with BLPOP. Between the pop and the worker's first write the job
is in no list, and a crash at that moment loses the job. In hivepipe, the script that takes a job
from its queue also adds it to `rq:wip:<queue>` (RQ's registry of started jobs).

rq:queue:<q>         list   waiting
rq:wip:<q>           zset   running; member <job>:<execution>, score = end of the lease
rq:scheduled:<q>     zset   retrying; score = due time (fractions of a second, unlike RQ's own)
rq:finished:<q>, rq:failed:<q>   zset   finished, failed
hivepipe:bell        list   a hook pushes to it after an enqueue; the writer blocks on it
hivepipe:bell:<q>    list   the same for the workers of slow and llm; the writer pushes to it
hivepipe:held_up:<q> zset   retrying because the environment failed; due when it works again
hivepipe:clock       hash   first queue of a worker -> Redis' time at a recent claim
hivepipe:set_aside   list   ids that were in a queue, but whose key is not a job hash
hivepipe:newer       int    newest envelope version in a queue, if it needs a newer hivepipe
hivepipe:accepted, :periodic           int   counters of enqueued jobs: of events, of the schedule
hivepipe:done, :discarded, :retried    int   counters of finished, discarded and retried jobs
hivepipe:operations  hash   operation -> number of its finished jobs
hivepipe:trouble     hash   while the store cannot be written: since (seconds since 1970), reason
"""

import base64
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from hivepipe.events.job_plan import ENVELOPE_VERSION, dumps, utc
from hivepipe.queue.client import RESULT_TTL_SECS, job_data
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.scripts import script
from hivepipe.queue.stock_jobs import COUNT, EXECUTED_KEY
from hivepipe.redact import redact_text

EXECUTION = "hivepipe"  # RQ's execution id; a constant, because each queue has one claiming worker
NEWER_KEY = "hivepipe:newer"
NEWER_SECS = 60
OPERATIONS_KEY = "hivepipe:operations"
RETRIED_KEY = "hivepipe:retried"
# No retry has a longer delay; a later due time means that the clock was set back
LONGEST_SECS = 4000
CLOCK_KEY = "hivepipe:clock"
CLOCK_EVERY_SECS = 5

SCRIPTS = {
    "claim": script(
        "claim",
        CLOCK_EVERY_SECS=CLOCK_EVERY_SECS,
        CLOCK_KEY=CLOCK_KEY,
        EXECUTION=EXECUTION,
        NEWER_KEY=NEWER_KEY,
        NEWER_SECS=NEWER_SECS,
    ),
    "acknowledge": script(
        "acknowledge",
        EXECUTED_KEY=EXECUTED_KEY,
        EXECUTION=EXECUTION,
        OPERATIONS_KEY=OPERATIONS_KEY,
    ),
    "retry": script("retry", EXECUTION=EXECUTION, RETRIED_KEY=RETRIED_KEY),
    "retry_now": script("retry_now"),
    "fail": script("fail", EXECUTION=EXECUTION),
    "move": script("move", EXECUTION=EXECUTION),
    "put_back": script("put_back", EXECUTION=EXECUTION),
    "renew": script("renew", EXECUTION=EXECUTION),
    "recover": script("recover", EXECUTION=EXECUTION, LONGEST_SECS=LONGEST_SECS),
}

LEASE_SECS = 60
DEATHS = 3
TROUBLE_KEY = "hivepipe:trouble"

# A finished job stays in RQ's registry for a minute, without the user's text.
_EMPTIED = job_data(dumps({"v": ENVELOPE_VERSION}))


Argument = bytes | bytearray | memoryview | str | int | float


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job that this process holds until it acknowledges, retries or fails it."""

    id: str
    queue: str
    data: bytes
    attempts: int
    is_ours: bool  # the job has our marker; a job without the marker fails and is never executed
    failures: int = 0  # failures that the environment did not cause; limits count only these


@dataclass(frozen=True, slots=True)
class Claim:
    jobs: list[Claimed]
    next_due_secs: float | None  # seconds until the first retry is due, or None
    newer: bool  # a job waits whose envelope only a newer hivepipe can read
    foreign: int  # number of jobs of other programs, which stay in their queues
    set_back_secs: float = 0.0  # seconds by which the clock was set back since an earlier claim


class Claims:
    """The claim scripts, bound to one connection and one worker."""

    def __init__(
        self,
        connection: Redis,
        queues: Sequence[str],
        worker_name: str,
        worker_key: str,
        is_shared: bool = False,
    ) -> None:
        """Bind the scripts to a worker, the only one that serves `queues` (most urgent first).

        `worker_key` is the key of RQ's worker hash. With `is_shared`, other programs use the server
        too, and jobs without hivepipe's marker stay in their queues.
        """
        self._is_shared = is_shared
        self._queues = queues
        self._worker_name = worker_name
        self._worker_key = worker_key
        self._run = {name: connection.register_script(text) for name, text in SCRIPTS.items()}

    def serve(self, queues: Sequence[str]) -> None:
        """Claim from `queues` from now on. Only this worker is allowed to serve them."""
        self._queues = queues

    def claim(self, places: int) -> Claim:
        """Claim up to `places` jobs, most urgent first, including retries that are due."""
        arguments: list[Argument] = [
            places,
            LEASE_SECS,
            self._worker_name,
            _now(),
            ENVELOPE_VERSION,
            int(self._is_shared),
            *self._queues,
        ]
        found, due, newer, foreign, back = self._run["claim"](args=arguments)
        jobs = [
            Claimed(id.decode(), queue.decode(), data, int(attempts), bool(ours), int(failures))
            for id, queue, data, attempts, ours, failures in found
        ]
        next_due_secs = float(due) if float(due) >= 0 else None
        return Claim(jobs, next_due_secs, bool(newer), int(foreign), float(back))

    def acknowledge(self, done: list[tuple[Claimed, str]]) -> int:
        """Mark jobs as done, each with its operation; return how many were still claimed."""
        arguments: list[Argument] = [self._worker_key, _now(), RESULT_TTL_SECS, _EMPTIED]
        for job, operation in done:
            arguments += (job.id, job.queue, operation)
        return int(self._run["acknowledge"](args=arguments)) if done else 0

    def retry(self, jobs: list[tuple[Claimed, str, float]], held_up: bool = False) -> None:
        """Schedule another attempt of each job, in the given queue after a delay in seconds.

        `held_up` means that the environment failed, not the jobs. The method `retry_now` makes jobs
        with `held_up` due before their delay ends.
        """
        arguments: list[Argument] = [int(held_up)]
        for job, queue, delay_secs in jobs:
            failures = job.failures if held_up else job.failures + 1
            arguments += (job.id, job.queue, queue, delay_secs, job.attempts + 1, failures)
        if jobs:
            self._run["retry"](args=arguments)

    def retry_now(self) -> int:
        """Make the jobs that were retried with `held_up` due now; return their number."""
        return int(self._run["retry_now"](args=list(self._queues)))

    def fail(self, jobs: list[tuple[Claimed, str, bytes, str]]) -> None:
        """Move jobs to the failed registry; each has a reason and its new data and description."""
        arguments: list[Argument] = [self._worker_key, _now()]
        for job, reason, data, description in jobs:
            arguments += (job.id, job.queue, _packed(redact_text(reason)), data, description)
        if jobs:
            self._run["fail"](args=arguments)

    def move(self, jobs: list[tuple[Claimed, str, float]]) -> None:
        """Move jobs to the queues of other workers; a job becomes due after a delay in seconds."""
        arguments: list[Argument] = []
        for job, target, delay_secs in jobs:
            arguments += (job.id, job.queue, target, delay_secs)
        if arguments:
            self._run["move"](args=arguments)

    def put_back(self, job: Claimed) -> None:
        """Return a job to the head of its queue without counting an attempt."""
        self._run["put_back"](args=[job.id, job.queue])

    def renew(self, job: Claimed) -> None:
        self._run["renew"](args=[job.id, job.queue, LEASE_SECS, _now()])

    def recover(self, blamed: str) -> int:
        """Return the jobs of a dead worker to their queues; return the number of jobs.

        `blamed` is the id of the job that the worker executed when the worker died, or "".
        """
        reason = _packed("killed its worker three times")
        return int(self._run["recover"](args=[blamed, DEATHS, reason, _now(), *self._queues]))


def _now() -> str:
    return utc(time.time_ns())


def _packed(reason: str) -> bytes:
    """Return the packed reason of a failure, in the form in which RQ stores it with the job."""
    return base64.b64encode(zlib.compress(reason.encode("utf-8", "replace")))


_ACCOUNTS = COUNT + script("accounts")


def accounts(connection: Redis) -> dict[str, int]:
    """Return the number of jobs in each state, periodic jobs included.

    No number is derived from the others, so you can check whether they add up to `accepted`.
    """
    found: Any = connection.eval(_ACCOUNTS, 0, *ALL_QUEUES)
    accepted, periodic, done, discarded, *counts = found
    return {
        "accepted": accepted + periodic,
        "done": done,
        "waiting": sum(counts[0::4]),
        "running": sum(counts[1::4]),
        "retrying": sum(counts[2::4]),
        "failed": sum(counts[3::4]),
        "discarded": discarded,
    }
