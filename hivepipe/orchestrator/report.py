"""Send a worker's status to the store through the queues, for the monitor."""

from contextlib import closing
from hashlib import blake2b

import redis

from hivepipe.events.claude_code import valid_id
from hivepipe.home import Place
from hivepipe.jobs.envelope import compose
from hivepipe.jobs.origin import Origin
from hivepipe.jobs.worker_status import RecordStatus
from hivepipe.orchestrator import records
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.status import Status
from hivepipe.orchestrator.worker import Worker
from hivepipe.queue.client import RefusedError
from hivepipe.queue.connection import connect, send
from hivepipe.stack.ping import answers
from hivepipe.times import stored_time

PUSH_SECS = 2.0


def tell(place: Place, hive: Hive, worker: Worker, status: Status) -> None:
    """Enqueue a worker's status; StoreError: neither the queue nor the store accepted it.

    The job id is derived from the status, so several monitors enqueue it once. Without Redis, or if
    it refuses the job, the store is written directly.
    """
    job = _args(worker, status).job(worker.id)
    text = f"{worker.id}\0{status.changed_ns}\0{status.digest}"
    id = blake2b(text.encode(), digest_size=16).hexdigest()
    session = valid_id(worker.card().session)
    origin = Origin(
        id=id,
        operation=job.operation,
        event_time_ns=status.changed_ns,
        session=session,
        project=place.project,
    )
    message = compose(id, job, status.changed_ns, parent=origin)
    try:
        if answers(place.socket):
            with closing(connect(place.socket)) as connection:
                send(connection, place.socket, [message], PUSH_SECS)
            return
    except (RefusedError, redis.RedisError):
        pass
    records.record(hive, [worker])


def _args(worker: Worker, status: Status) -> RecordStatus:
    return RecordStatus(
        worker_id=worker.id,
        status=status.word,
        sha256=status.digest,
        changed_ns=status.changed_ns,
        changed_at=stored_time(status.changed_ns),
        content=records.content_of(status),
    )
