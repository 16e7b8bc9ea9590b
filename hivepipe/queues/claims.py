"""Claim, acknowledge, retry, bury: RQ's keys moved in one script each, so that no job is ever
in no list.

A stock worker on several queues pops with BLPOP: between the pop and its first write the job is
nowhere, and a restart there loses it. Here a job goes from its queue into `rq:wip:<queue>` (RQ's
registry of started jobs) in the same script.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis import Redis

from hivepipe.jobs import ENVELOPE_VERSION, dumps
from hivepipe.queues.claim_scripts import (
    ACKNOWLEDGE,
    BURY,
    CLAIM,
    HAND_ON,
    HURRY,
    PUT_BACK,
    RECOVER,
    RENEW,
    RETRY,
)
from hivepipe.queues.client import RESULT_TTL_SECS, job_data
from hivepipe.queues.names import ALL_QUEUES
from hivepipe.queues.stock_jobs import COUNT
from hivepipe.redaction import redact_text

LEASE_SECS = 60
DEATHS = 3
TROUBLE_KEY = "hivepipe:trouble"  # hash: since (seconds of 1970), reason; the store is unwell

# What a finished job keeps: its place in RQ's lists, nothing that a person wrote.
_EMPTIED = job_data(dumps({"v": ENVELOPE_VERSION}))


Argument = bytes | bytearray | memoryview | str | int | float


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job that this process holds until it acknowledges, retries or buries it."""

    id: str
    queue: str
    data: bytes
    attempts: int
    is_ours: bool  # it carries our marker; a foreign one is buried, never run


@dataclass(frozen=True, slots=True)
class Claim:
    """What one claim found."""

    jobs: list[Claimed]
    next_due_secs: float | None  # until the first retry comes due
    newer: bool  # a job of a later hivepipe waits, which this one cannot read
    foreign: int  # jobs of another program, which are left where they are
    set_back_secs: float = 0.0  # by how much the clock was set back since a claim before


class Claims:
    """The scripts, bound to one connection and one worker."""

    def __init__(
        self,
        connection: Redis,
        queues: Sequence[str],
        worker_name: str,
        worker_key: str,
        is_shared: bool = False,
    ) -> None:
        """`queues`, most urgent first, are this worker's alone; `worker_key`: RQ's hash of it.

        `is_shared`: the server is not our own; jobs without our marker are left where they are.
        """
        self._is_shared = is_shared
        self._queues = queues
        self._worker_name = worker_name
        self._worker_key = worker_key
        self._claim = connection.register_script(CLAIM)
        self._acknowledge = connection.register_script(ACKNOWLEDGE)
        self._retry = connection.register_script(RETRY)
        self._hurry = connection.register_script(HURRY)
        self._bury = connection.register_script(BURY)
        self._hand_on = connection.register_script(HAND_ON)
        self._put_back = connection.register_script(PUT_BACK)
        self._renew = connection.register_script(RENEW)
        self._recover = connection.register_script(RECOVER)

    def claim(self, places: int) -> Claim:
        """Take up to so many jobs, most urgent first, due retries among them."""
        arguments: list[Argument] = [
            places,
            LEASE_SECS,
            self._worker_name,
            _now(),
            ENVELOPE_VERSION,
            int(self._is_shared),
            *self._queues,
        ]
        found, due, newer, foreign, back = self._claim(args=arguments)
        jobs = [
            Claimed(id.decode(), queue.decode(), data, int(attempts), bool(ours))
            for id, queue, data, attempts, ours in found
        ]
        next_due_secs = float(due) if float(due) >= 0 else None
        return Claim(jobs, next_due_secs, bool(newer), int(foreign), float(back))

    def acknowledge(self, done: list[tuple[Claimed, str]]) -> int:
        """Mark jobs as done, each with its operation; return how many were still ours."""
        arguments: list[Argument] = [self._worker_key, _now(), RESULT_TTL_SECS, _EMPTIED]
        for job, operation in done:
            arguments += (job.id, job.queue, operation)
        return int(self._acknowledge(args=arguments)) if done else 0

    def retry(self, jobs: list[tuple[Claimed, str, float]], held_up: bool = False) -> None:
        """Let jobs come back, each to a queue after a delay in seconds, one attempt older.

        `held_up`: the environment failed, not the jobs; `hurry` brings them back before the delay.
        """
        arguments: list[Argument] = [int(held_up)]
        for job, queue, delay_secs in jobs:
            arguments += (job.id, job.queue, queue, delay_secs, job.attempts + 1)
        if jobs:
            self._retry(args=arguments)

    def hurry(self) -> int:
        """Let the jobs that the environment held up come back now; return how many."""
        return int(self._hurry(args=list(self._queues)))

    def bury(self, jobs: list[tuple[Claimed, str, bytes, str]]) -> None:
        """Make jobs failed jobs, each with its reason, and the data and description it keeps."""
        arguments: list[Argument] = [self._worker_key, _now()]
        for job, reason, data, description in jobs:
            arguments += (job.id, job.queue, _packed(reason), data, description)
        if jobs:
            self._bury(args=arguments)

    def hand_on(self, jobs: list[tuple[Claimed, str, float]]) -> None:
        """Move jobs to other workers' queues, each after a delay in seconds."""
        arguments: list[Argument] = []
        for job, target, delay_secs in jobs:
            arguments += (job.id, job.queue, target, delay_secs)
        if arguments:
            self._hand_on(args=arguments)

    def put_back(self, job: Claimed) -> None:
        """Let a job be claimed again, first of its queue and no attempt older."""
        self._put_back(args=[job.id, job.queue])

    def renew(self, job: Claimed) -> None:
        """Hold a job for another lease."""
        self._renew(args=[job.id, job.queue, LEASE_SECS, _now()])

    def recover(self, blamed: str) -> int:
        """Put back what a dead writer held; `blamed` is the job it was executing when it died."""
        reason = _packed("killed its worker three times")
        return int(self._recover(args=[blamed, DEATHS, reason, _now(), *self._queues]))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _packed(reason: str) -> bytes:
    """Redact the text of a failure, which stays as long as its job, and pack it as RQ does."""
    return base64.b64encode(zlib.compress(redact_text(reason).encode("utf-8", "replace")))


# Not a transaction: a Redis whose memory is full refuses it, reads and all. ARGV: queues
_ACCOUNTS = f"""
{COUNT}
local found = {{}}
for _, name in ipairs({{'accepted', 'periodic', 'done', 'discarded'}}) do
  found[#found + 1] = tonumber(redis.call('GET', 'hivepipe:' .. name) or 0)
end
for _, q in ipairs(ARGV) do
  found[#found + 1] = redis.call('LLEN', 'rq:queue:' .. q)
  for _, state in ipairs({{'wip', 'scheduled', 'failed'}}) do
    found[#found + 1] = redis.call('ZCARD', 'rq:' .. state .. ':' .. q)
  end
end
return found
"""


def accounts(connection: Redis) -> dict[str, int]:
    """Return where all jobs are, those by the clock among them.

    Each figure is counted where a job goes in or out, none is computed from another.
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
