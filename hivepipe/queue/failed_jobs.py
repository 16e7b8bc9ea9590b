"""List, retry and discard the jobs in RQ's failed registries; log who retried or discarded.

RQ's `Job.fetch` unpickles the job's data; this module never does. A job that cannot be read is
listed too, with the operation `?`, so that it can be discarded.
"""

import base64
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import orjson
from redis import Redis
from redis.exceptions import RedisError

from hivepipe.errors import BadEnvelopeError, HivepipeError, StackError
from hivepipe.events.job_plan import queue_of, utc
from hivepipe.files.action_log import Action, record
from hivepipe.jobs.envelope import Envelope, read_envelope, redacted
from hivepipe.queue.client import RETRY_SECS
from hivepipe.queue.connection import REPLY_SECS, connect
from hivepipe.queue.job_data import envelope_text
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.scripts import script
from hivepipe.queue.stock_jobs import EXECUTED_KEY
from hivepipe.redact import redact_text
from hivepipe.redact.fields import redact_column
from hivepipe.text.plurals import counted

Verb = Literal["retry", "discard"]
IDS_RECORDED = 100
UNREADABLE = "?"
AT_A_TIME = 500
REASON_BYTES = 1 << 16
_FIELDS = ("data", "description", "ended_at", "hp_attempts", "hp_deaths", "retries_left")
_MISSING = re.compile(r"\b(session|swarm) (\S+) does not exist")

_RETRY = script("retry_failed", RETRIES=str(len(RETRY_SECS)))

_DISCARD = script("discard_failed", EXECUTED_KEY=EXECUTED_KEY)


@dataclass(frozen=True, slots=True)
class FailedJob:
    """One job without attempts left; secrets in its texts are redacted."""

    id: str
    queue: str  # the queue whose failed registry holds it
    target: str  # the queue of the job's original priority
    operation: str
    description: str
    reason: str
    session: str
    attempts: int
    failed_at: str
    event_time: str
    payload: dict[str, Any] | None  # None if the envelope cannot be read

    @property
    def headline(self) -> str:
        """Return the last line of the failure reason; in a traceback this line names the error."""
        return self.reason.rstrip().rpartition("\n")[2]

    @property
    def missing_parent(self) -> tuple[str, str] | None:
        """Return kind and id of the missing parent row, or None if the job failed otherwise."""
        found = _MISSING.search(self.headline)
        return (found[1], found[2]) if found else None


@contextmanager
def failed_jobs(address: str) -> Iterator["FailedJobs"]:
    """Yield the failed jobs of a Redis. Raise StackError if it cannot be reached."""
    with connect(address, limit_secs=REPLY_SECS) as connection:
        try:
            yield FailedJobs(connection)
        except RedisError as error:
            raise StackError(f"Redis does not answer ({error}): run `hivepipe up`") from error


class FailedJobs:
    """The failed registries of hivepipe's queues."""

    def __init__(self, connection: Redis) -> None:
        self._connection = connection

    def jobs(self, operation: str = "") -> list[FailedJob]:
        ids = self._ids()
        found: list[FailedJob] = []
        for at in range(0, len(ids), AT_A_TIME):
            part = self._read(ids[at : at + AT_A_TIME])
            found += (job for job in part if operation in ("", job.operation))
        return found

    def job(self, prefix: str) -> FailedJob:
        """Return the job whose id starts with `prefix`; raise HivepipeError unless it is unique."""
        ids = [(id, queue) for id, queue in self._ids() if _text(id).startswith(prefix)]
        ids = [entry for entry in ids if _text(entry[0]) == prefix] or ids
        if not ids:
            raise HivepipeError(f"no failed job has the id {prefix}: see `hivepipe failed list`")
        if len(ids) > 1:
            raise HivepipeError(f"{len(ids)} failed jobs have an id that begins with {prefix}")
        return self._read(ids)[0]

    def retry(self, jobs: list[FailedJob]) -> int:
        """Return jobs to the queues of their original priority; return the number of moved jobs."""
        each = [(_bytes(job.id), job.queue, job.target) for job in jobs]
        return self._run(_RETRY, each, utc(time.time_ns()))

    def discard(self, jobs: list[FailedJob]) -> int:
        """Delete jobs; return how many of them still existed."""
        return self._run(_DISCARD, [(_bytes(job.id), job.queue) for job in jobs])

    def _run(self, text: str, jobs: list[tuple[Any, ...]], *first: str) -> int:
        """Run the script `text` on batches of jobs; return the sum of the script's results.

        `first` has the arguments that precede the jobs in each run.
        """
        run = self._connection.register_script(text)
        parts = (jobs[at : at + AT_A_TIME] for at in range(0, len(jobs), AT_A_TIME))
        return sum(int(run(args=[*first, *chain.from_iterable(part)])) for part in parts)

    def _ids(self) -> list[tuple[bytes, str]]:
        found: list[tuple[bytes, str]] = []
        for queue in ALL_QUEUES:
            ids: Any = self._connection.zrange(f"rq:failed:{queue}", 0, -1)
            found += ((id, queue) for id in ids)
        return found

    def _read(self, ids: list[tuple[bytes, str]]) -> list[FailedJob]:
        pipe = self._connection.pipeline(transaction=False)
        for id, _ in ids:
            pipe.hmget(b"rq:job:" + id, _FIELDS)
            pipe.xrevrange(b"rq:results:" + id, count=1)
        # A key of another type gives an error reply; that job is listed as unreadable.
        answers = pipe.execute(raise_on_error=False)
        return [
            _job(id, queue, answers[2 * number], answers[2 * number + 1])
            for number, (id, queue) in enumerate(ids)
        ]


def retry_or_discard(
    store: FailedJobs, home: str, verb: Verb, jobs: list[FailedJob], by: str
) -> Action:
    """Retry or discard jobs; return the logged action.

    `by` is `command`, or names the page and its client. Raise HivepipeError if the action is done
    but cannot be logged.
    """
    done = store.retry(jobs) if verb == "retry" else store.discard(jobs)
    return record(
        home,
        f"{verb} of {counted(done, 'job')}",
        by=by,
        action=verb,
        chosen=len(jobs),
        done=done,
        operations=dict(Counter(job.operation for job in jobs)),
        ids=[job.id.encode("utf-8", "replace").decode() for job in jobs[:IDS_RECORDED]],
    )


def _job(id: bytes, queue: str, fields: Any, results: Any) -> FailedJob:
    values = fields if isinstance(fields, list) else [None] * len(_FIELDS)
    data, description, ended_at, attempts, deaths, retries_left = values
    envelope, payload, problem = _opened(data)
    by_rq = len(RETRY_SECS) - _number(retries_left, len(RETRY_SECS))
    return FailedJob(
        id=_text(id),
        queue=queue,
        target=queue_of(envelope.priority) if envelope else queue,
        operation=envelope.operation if envelope else UNREADABLE,
        description=redact_text((description or b"").decode("utf-8", "replace")),
        reason=redact_text(_reason(results) or problem or "no reason was recorded"),
        session=redact_column("session", envelope.session) if envelope else "",
        attempts=max(_number(attempts, 0) + 1, by_rq + 1, _number(deaths, 0)),
        failed_at=(ended_at or b"").decode("utf-8", "replace"),
        event_time=envelope.time if envelope else "",
        payload=payload,
    )


def _opened(data: bytes | None) -> tuple[Envelope | None, dict[str, Any] | None, str]:
    """Return a job's envelope, its redacted payload and ""; or None, None and the error."""
    if data is None:
        return None, None, "the job's data is missing"
    try:
        text = envelope_text(data)
        envelope = read_envelope(text)
        return envelope, orjson.loads(redacted(text))["payload"], ""
    except BadEnvelopeError as error:
        return None, None, str(error)
    except RecursionError:  # a hostile value: hivepipe's payloads are not nested as deeply
        return None, None, "the envelope is nested too deeply"


def _reason(results: Any) -> str:
    """Return why a job failed: the text of its newest RQ result, unpacked, or ""."""
    try:
        packed = base64.b64decode(results[0][1][b"exc_string"])
        return zlib.decompressobj().decompress(packed, REASON_BYTES).decode("utf-8", "replace")
    except (TypeError, LookupError, ValueError, zlib.error):
        return ""


def _number(value: bytes | None, default: int) -> int:
    return int(value) if value and value.isdigit() and len(value) < 10 else default


def _text(id: bytes) -> str:
    return id.decode("utf-8", "surrogateescape")


def _bytes(id: str) -> bytes:
    return id.encode("utf-8", "surrogateescape")
