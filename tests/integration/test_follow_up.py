"""The follow-ups of a slow job: results are stored exactly once, and new work is enqueued.

Redis is fakeredis in this process; the store is real.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import fakeredis
import pytest

from hivepipe.db.database import LONGEST_SECS, Database, write_shortly
from hivepipe.db.location import database_path
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import Envelope, follow_ups, read_envelope
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.archive import ArchiveTranscript, RecordUsage
from hivepipe.operations.families.retention import CountDropped, LogCleanups
from hivepipe.operations.families.summaries import SummariseSession
from hivepipe.operations.follow_up import follow_up_job
from hivepipe.operations.registry import execute
from hivepipe.queue.job_data import envelope_text
from hivepipe.queue.spooled import read_spool_file, spool_files

# not a local address, so that fakeredis is used instead of a server
FAKE_URL = "rediss://nobody.example:6379"
PARENT = Origin(id="p1", operation="prune_files", event_time_ns=10**18, session="s-1")
RESULTS = [CountDropped(what="spool", number=3).job(), CountDropped(what="notes", number=2).job()]


class Setting:
    """A home with a store, and a fake Redis."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.server = fakeredis.FakeServer()
        self.redis = fakeredis.FakeRedis(server=self.server)
        self.database().close()

    def database(self) -> Database:
        return Database(database_path(str(self.home)), 5.0)

    def follow_up(self, jobs: list[Job]) -> None:
        follow_up_job(str(self.home), self.redis, FAKE_URL, PARENT, jobs)

    def counted(self) -> dict[str, int]:
        with closing(self.database()) as db:
            return {row["name"]: row["value"] for row in db.rows("SELECT * FROM counters")}

    def queued(self, queue: str) -> list[Envelope]:
        ids = self.redis.lrange(f"rq:queue:{queue}", 0, -1)
        found = [self.redis.hget(b"rq:job:" + id, "data") for id in ids]
        return [read_envelope(envelope_text(data)) for data in found]

    def spooled(self) -> list[str]:
        files = spool_files(self.home / "spool")
        return [job.message.id for path in files for job in read_spool_file(path)]

    def apply(self, jobs: list[Envelope]) -> None:
        with closing(self.database()) as db, db.transaction():
            for job in jobs:
                execute(db, job)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


@pytest.fixture
def locked(setting: Setting) -> Iterator[Setting]:
    with closing(setting.database()) as db, db.transaction():
        yield setting


STORED = {"dropped:spool": 3, "dropped:notes": 2}


def test_results_are_stored_immediately_and_once(setting: Setting) -> None:
    setting.follow_up(RESULTS)
    setting.follow_up(RESULTS)  # as if its worker was killed before the end of the job
    assert setting.counted() == STORED
    assert setting.redis.keys() == []


def test_results_for_a_locked_store_are_enqueued_for_the_writer(locked: Setting) -> None:
    began = time.monotonic()
    locked.follow_up(RESULTS)
    assert time.monotonic() - began < 5
    assert [job.operation for job in locked.queued("low")] == ["count_dropped", "count_dropped"]
    assert locked.redis.get("hivepipe:accepted") == b"2"


def test_a_result_that_was_enqueued_before_is_applied_once(setting: Setting) -> None:
    """A worker of 1.0.0 enqueued the result; the job runs again before the writer applies it."""
    waiting = [read_envelope(message.envelope) for message in follow_ups(PARENT, RESULTS)]
    setting.follow_up(RESULTS)
    setting.apply(waiting)
    assert setting.counted() == STORED


def test_without_store_and_redis_results_are_spooled(locked: Setting) -> None:
    locked.server.connected = False
    locked.follow_up(RESULTS)
    (path,) = spool_files(locked.home / "spool")
    wanted = [message.id for message in follow_ups(PARENT, RESULTS)]
    assert [job.message.id for job in read_spool_file(path)] == wanted


def test_results_of_one_event_do_not_replace_each_other_in_the_spool(locked: Setting) -> None:
    locked.server.connected = False
    for result in RESULTS:
        locked.follow_up([result])
    assert locked.spooled() == [message.id for message in follow_ups(PARENT, RESULTS)]


def test_the_usage_of_a_large_transcript_is_spooled_in_files_that_can_be_read(
    locked: Setting,
) -> None:
    locked.server.connected = False
    results = [RecordUsage(messages=[number, "x" * 64_000]).job() for number in range(40)]
    locked.follow_up(results)
    assert locked.spooled() == [message.id for message in follow_ups(PARENT, results)]


def test_results_for_a_missing_store_are_enqueued_for_the_writer(setting: Setting) -> None:
    database_path(str(setting.home)).unlink()
    setting.follow_up(RESULTS)
    assert len(setting.queued("low")) == 2
    assert not database_path(str(setting.home)).exists()


def test_new_work_is_enqueued_directly(setting: Setting) -> None:
    settling = ArchiveTranscript(path="/t.jsonl", kind="main", settle_s=5)
    setting.follow_up([LogCleanups().job(), SummariseSession().job(), settling.job()])
    assert [job.operation for job in setting.queued("slow")] == ["log_cleanups"]
    assert [job.operation for job in setting.queued("llm")] == ["summarise_session"]
    ((id, due),) = setting.redis.zrange("rq:scheduled:slow", 0, -1, withscores=True)
    assert 3 < due - time.time() <= 5
    assert setting.redis.hget(b"rq:job:" + id, "status") == b"scheduled"
    assert setting.redis.get("hivepipe:accepted") == b"3"
    assert setting.redis.llen("hivepipe:bell:slow") == setting.redis.llen("hivepipe:bell:llm") == 1


def test_many_writes_are_split_into_several_transactions(setting: Setting) -> None:
    seen = []
    with closing(setting.database()) as db, closing(setting.database()) as other:

        def write(number: int) -> None:
            seen.append(len(other.rows("SELECT * FROM counters")))
            db.execute("INSERT INTO counters VALUES (:name, 1)", {"name": str(number)})
            time.sleep(2 * LONGEST_SECS)

        write_shortly(db, [partial(write, number) for number in range(3)])
    assert seen == [0, 1, 2]
