"""Read the jobs of a Redis, and write them into a spool, from which another Redis gets them."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from redis import Redis

from hivepipe.errors import BadEnvelopeError
from hivepipe.events.job_plan import Message, queue_of
from hivepipe.jobs.envelope import read_envelope
from hivepipe.queue.job_data import envelope_text, inflated
from hivepipe.queue.spool import write_spool

AT_ONCE = 500


def spool_jobs(connection: Redis, spool: str) -> None:
    """Write each job of an event into a spool. A job that is done has no data."""
    for id, data in all_jobs(connection):
        if not id.isalnum():  # periodic work, which every stack plans for itself
            continue
        with suppress(BadEnvelopeError, RecursionError):  # not a job of hivepipe
            text = envelope_text(data)
            job = read_envelope(text)
            message = Message(job.id, "", queue_of(job.priority), job.operation, "", text)
            write_spool(spool, job.event_time_ns, [message])


def all_jobs(connection: Redis) -> Iterator[tuple[bytes, bytes]]:
    """Yield id and uncompressed data of every job that has data."""
    found = iter(connection.scan_iter("rq:job:*", count=AT_ONCE))
    while keys := list(islice(found, AT_ONCE)):
        pipe = connection.pipeline(transaction=False)
        for key in keys:
            pipe.hget(key, "data")
        for key, data in zip(keys, pipe.execute(raise_on_error=False), strict=True):
            if isinstance(data, bytes):
                yield key.removeprefix(b"rq:job:"), _plain(data)


def _plain(data: bytes) -> bytes:
    try:
        return inflated(data)
    except (BadEnvelopeError, zlib.error):
        return data
