"""Read the jobs of a Redis, and write them into a spool, so that another Redis gets them."""

import re
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from redis import Redis

from hivepipe.errors import BadEnvelopeError, NewerEnvelopeError, StackError
from hivepipe.events.job_plan import Message, queue_of, utc
from hivepipe.files.regular_file import ANY_SIZE, read_bytes
from hivepipe.home import Place
from hivepipe.jobs.envelope import read_envelope
from hivepipe.queue.job_data import envelope_text, inflated
from hivepipe.queue.spool import keep_event, write_spool
from hivepipe.queue.spooled import waiting_files
from hivepipe.queue.ticks import TICK_PREFIX

AT_ONCE = 500

_KEY = re.compile(rb"rq:job:([0-9A-Za-z]+)")


def spool_jobs(connection: Redis, spool: str) -> None:
    """Write the jobs of events into a spool; leave out periodic jobs. Raise OSError on failure."""
    for event_time_ns, message in _of_events(connection):
        write_spool(spool, event_time_ns, [message])


def keep_unwritten_jobs(connection: Redis, place: Place) -> None:
    """Spool the jobs that Redis accepted but cannot write to its file because the disk is full.

    Raise StackError with the number of remaining jobs if no spool can take them.
    """
    if connection.info("persistence")["aof_last_write_status"] == "ok":
        return
    written = _ids_in_files(Path(place.home))
    found = [each for each in _of_events(connection) if each[1].id.encode() not in written]
    for kept, (event_time_ns, message) in enumerate(found):
        try:
            keep_event(place, event_time_ns, [message])
        except OSError as error:
            raise StackError(
                f"{len(found) - kept} jobs are only in Redis' memory, because its file cannot be "
                f"written ({error.strerror}): free disk space first"
            ) from None


def _ids_in_files(home: Path) -> set[bytes]:
    """Return the ids of all jobs in the append-only file, which Redis 7 keeps in a folder."""
    found: set[bytes] = set()
    for path in (home / "appendonly.aof", *home.glob("appendonlydir/*.aof")):
        with suppress(FileNotFoundError):
            found.update(_KEY.findall(read_bytes(path, ANY_SIZE)))
    return found


def _of_events(connection: Redis) -> Iterator[tuple[int, Message]]:
    """Yield time and message of each unfinished job of an event; a finished job has no data."""
    for id, data in all_jobs(connection):
        if not id.isalnum():  # periodic work, which every stack plans for itself
            continue
        with suppress(BadEnvelopeError, RecursionError):  # not a job of hivepipe: left out
            text = envelope_text(data)
            try:
                job = read_envelope(text)
            except NewerEnvelopeError:  # the job waits in the spool until hivepipe is upgraded
                yield time.time_ns(), Message(id.decode(), "", "medium", "", "", text)
                continue
            message = Message(job.id, "", queue_of(job.priority), job.operation, "", text)
            yield job.event_time_ns, message


def oldest_job_time(connection: Redis, spool: Path) -> str | None:
    """Return the creation time of the oldest job in Redis or the spool, or None if there is no job.

    The time is text in RQ's format. Older ids in the table `applied` are no longer needed.
    """
    found = [_time_in_name(path) for path in waiting_files(spool)[:1]]
    for id, created in _fields(connection, "created_at"):
        if not id.startswith(TICK_PREFIX):
            found.append(created.decode("utf-8", "replace"))
    return min(found, default=None)


def _time_in_name(path: Path) -> str:
    """Return the time in a name `<event_time_ns>_<pid>.*`, or 1970 if the name has no time."""
    digits = path.name.partition("_")[0]
    return utc(int(digits) if digits.isdigit() else 0)


def all_jobs(connection: Redis) -> Iterator[tuple[bytes, bytes]]:
    """Yield id and uncompressed data of every job that has data."""
    for id, data in _fields(connection, "data"):
        yield id, _plain(data)


def _fields(connection: Redis, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield id and value of every job that has this field."""
    found = iter(connection.scan_iter("rq:job:*", count=AT_ONCE))
    while keys := list(islice(found, AT_ONCE)):
        pipe = connection.pipeline(transaction=False)
        for key in keys:
            pipe.hget(key, name)
        # A key of another type gives an error, which is ignored.
        for key, value in zip(keys, pipe.execute(raise_on_error=False), strict=True):
            if isinstance(value, bytes):
                yield key.removeprefix(b"rq:job:"), value


def _plain(data: bytes) -> bytes:
    try:
        return inflated(data)
    except (BadEnvelopeError, zlib.error):
        return data
