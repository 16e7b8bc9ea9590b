"""Store a worker's status for the monitor. If the store cannot be written, enqueue a job."""

from contextlib import closing
from hashlib import blake2b

import redis

from hivepipe.errors import StoreError
from hivepipe.events.claude_code import valid_id
from hivepipe.events.job_plan import Message
from hivepipe.home import Place
from hivepipe.jobs.envelope import compose
from hivepipe.jobs.origin import Origin
from hivepipe.jobs.worker_status import RecordStatus
from hivepipe.orchestrator import records
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.status import Status
from hivepipe.orchestrator.worker import Worker
from hivepipe.queue.client import RefusedError
from hivepipe.queue.connection import connect
from hivepipe.queue.enqueue import enqueue
from hivepipe.stack.ping import answers
from hivepipe.times import stored_time


def store_status(place: Place, hive: Hive, worker: Worker, status: Status) -> None:
    """Store a worker's status. Raise StoreError if neither the store nor the queue accepts it."""
    try:
        records.record_one_status(hive, worker, status)
    except StoreError:
        if not _enqueue(place, worker, status):
            raise


def _enqueue(place: Place, worker: Worker, status: Status) -> bool:
    """Enqueue a status, once for several monitors; tell whether the queue accepted it."""
    try:
        if not answers(place.socket):
            return False
        with closing(connect(place.socket)) as connection:
            enqueue(connection, place.socket, [_message(place, worker, status)])
    except (RefusedError, redis.RedisError):
        return False
    return True


def _message(place: Place, worker: Worker, status: Status) -> Message:
    args = RecordStatus(
        worker_id=worker.id,
        status=status.word,
        sha256=status.digest,
        changed_ns=status.changed_ns,
        changed_at=stored_time(status.changed_ns),
        content=records.content_of(status),
    )
    job = args.job(worker.id)
    text = f"{worker.id}\0{status.changed_ns}\0{status.digest}"
    id = blake2b(text.encode(), digest_size=16).hexdigest()
    origin = Origin(
        id=id,
        operation=job.operation,
        event_time_ns=status.changed_ns,
        session=valid_id(worker.card().session),
        project=place.project,
    )
    return compose(id, job, status.changed_ns, parent=origin)
