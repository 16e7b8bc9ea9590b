"""Requeue jobs that a killed stock worker left outside its queue.

A stock `rq worker` on several queues pops with BLPOP. If it is killed right after the pop, the
job's hash says `queued` but no list has the id. If it is killed later, the job stays in `rq:wip`
after its lease has ended. No job is taken from a live worker.
"""

from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from hivepipe.errors import BadEnvelopeError
from hivepipe.jobs.envelope import read_envelope, redacted
from hivepipe.queue.claims import EXECUTION
from hivepipe.queue.client import job_data
from hivepipe.queue.job_data import envelope_text
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.scripts import script
from hivepipe.times import age_secs

GRACE_SECS = 60.0

_REPUSH = script("repush_orphan")

_RECLAIM = script("reclaim_abandoned")


_REDACT = script("redact_failed")


def redact_failed_jobs(connection: Redis, is_shared: bool) -> None:
    """Redact failed jobs that a stock worker, or a third crash of the writer, left unredacted.

    With `is_shared`, other programs use the server too, and jobs without hivepipe's marker stay
    unchanged.
    """
    redact = connection.register_script(_REDACT)
    for queue in ALL_QUEUES:
        ids: Any = connection.zrange(f"rq:failed:{queue}", 0, -1)
        for job_id in _unredacted(connection, ids):
            found = _fields(connection, job_id, "data", "hp")
            if not found or not found[0] or (is_shared and not found[1]):
                continue
            try:
                text = envelope_text(found[0])
                operation = read_envelope(text).operation
                redact(args=[queue, job_id, job_data(redacted(text)), operation])
            except BadEnvelopeError:  # the job is not ours: its data stays unchanged
                redact(args=[queue, job_id, found[0], "unreadable"])


def _unredacted(connection: Redis, ids: list[bytes]) -> list[bytes]:
    """Return the ids of jobs that are not yet redacted, in one round trip."""
    pipe = connection.pipeline(transaction=False)
    for job_id in ids:
        pipe.hexists(b"rq:job:" + job_id, "hp_redacted")
    are_redacted = pipe.execute(raise_on_error=False)
    return [job_id for job_id, is_done in zip(ids, are_redacted, strict=True) if is_done is False]


def _fields(connection: Redis, job_id: bytes, *names: str) -> list[bytes | None]:
    """Return fields of a job, or [] if the key is not a hash."""
    try:
        found: Any = connection.hmget(b"rq:job:" + job_id, *names)
    except ResponseError:
        return []
    return list(found)


def reconcile(connection: Redis, is_shared: bool) -> int:
    """Requeue lost jobs; return their number. With `is_shared`, other programs use the server."""
    return _reclaim_abandoned(connection, is_shared) + _repush_orphans(connection)


def _reclaim_abandoned(connection: Redis, is_shared: bool) -> int:
    reclaim = connection.register_script(_RECLAIM)
    now, _ = connection.time()  # leases end by the clock of Redis
    found = 0
    for queue in ALL_QUEUES:
        held: Any = connection.zrange(f"rq:wip:{queue}", 0, -1, withscores=True)
        for member, ends in held:
            job_id, _, execution = member.partition(b":")
            # A worker of hivepipe recovers its claims when it starts.
            is_ours = not is_shared or any(_fields(connection, job_id, "hp"))
            if execution != EXECUTION.encode() and is_ours:
                found += int(reclaim(args=[queue, member, job_id, int(ends <= now)]))
    return found


def _repush_orphans(connection: Redis) -> int:
    listed: set[bytes] = set()
    for queue in ALL_QUEUES:
        waiting: Any = connection.lrange(f"rq:queue:{queue}", 0, -1)
        listed.update(waiting)
    keys: Any = connection.scan_iter(b"rq:job:*", count=1000)
    ids = [key[len(b"rq:job:") :] for key in keys]
    unlisted = [job_id for job_id in ids if job_id not in listed]
    pipe = connection.pipeline(transaction=False)
    for job_id in unlisted:
        pipe.hmget(b"rq:job:" + job_id, "status", "enqueued_at", "hp")
    repush = connection.register_script(_REPUSH)
    found = 0
    for job_id, fields in zip(unlisted, pipe.execute(raise_on_error=False), strict=True):
        if not isinstance(fields, list):  # the key is not a hash, and so not a job
            continue
        status, enqueued_at, ours = fields
        age = age_secs((enqueued_at or b"").decode("utf-8", "replace"))
        if ours and status == b"queued" and (age is None or age > GRACE_SECS):
            found += int(repush(args=[job_id]))
    return found
