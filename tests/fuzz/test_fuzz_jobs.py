"""A bad job in Redis or a bad spool file harms no other job."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.db.database import Database
from hivepipe.errors import BadEnvelopeError
from hivepipe.events.job_plan import queue_of
from hivepipe.jobs.envelope import read_envelope, redacted
from hivepipe.jobs.retry import demoted
from hivepipe.operations.declared import OPERATIONS
from hivepipe.queue.claims import Claimed
from hivepipe.queue.client import job_data
from hivepipe.queue.job_data import envelope_text
from hivepipe.queue.spool import write_spool
from hivepipe.queue.spooled import read_spool_file
from hivepipe.worker import writer
from hivepipe.worker.group_commit import commit_batch
from tests.faults import oracle
from tests.fuzz.inputs import altered, as_json, broken, fuzzed, replayed
from tests.rounds import SEED

SENT = [
    sent for sent in oracle.messages(oracle.mix(SEED, 60).all, "/home/ana/shop", "swarm-a") if sent
]
ENVELOPES = [json.loads(message.envelope) for sent in SENT for message in sent]
ENVELOPES += [{**ENVELOPES[0], "operation": operation} for operation in sorted(OPERATIONS)]
GOOD = oracle.messages(
    oracle.timed([oracle.start(3, "inst-z"), oracle.prompt(1, oracle.SESSIONS[3], "inst-z")]),
    "/home/ana/shop",
    "swarm-a",
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("db") / "hive.db")
    yield made
    made.close()


def claimed(id: str, data: bytes) -> Claimed:
    return Claimed(id, "high", data, 0, True)


def check_job(db: Database, data: bytes) -> None:
    """Execute the data between two good jobs, as the writer does without Redis."""
    good = [message for sent in GOOD for message in sent]
    first, *others = (claimed(message.id, job_data(message.envelope)) for message in good)
    batch = writer._sorted([first, claimed("suspect", data), *others])
    for job, reason, kept, _ in batch.dead:
        assert (job.id, job.data) == ("suspect", kept)
        assert reason
    for _, queue, delay_secs in batch.long:
        assert queue in ("slow", "llm")
        assert 0 <= delay_secs <= 600
    db_forgets(db)
    outcome = commit_batch(db, [envelope for _, envelope in batch.writes])
    done = {batch.writes[index][0].id for index in outcome.committed}
    assert done >= {message.id for message in good}
    assert set(outcome.failed) <= {1}
    for job, envelope in (*batch.writes, *batch.short):
        assert queue_of(demoted(envelope.priority, 1)) in ("high", "medium", "low")
        redacted(envelope_text(job.data)).encode("ascii")


def db_forgets(db: Database) -> None:
    """Delete the effects of the good jobs, so that they are executed again."""
    with db.transaction():
        for table in ("applied", "prompts"):
            db.execute(f"DELETE FROM {table}", {})


@fuzzed
@given(data=broken(altered(ENVELOPES).map(lambda value: job_data(json.dumps(value)))))
def test_any_job_harms_no_other_job(db: Database, data: bytes) -> None:
    check_job(db, data)


@fuzzed
@given(value=altered(ENVELOPES))
def test_any_envelope_harms_no_other_job(db: Database, value: Any) -> None:
    check_job(db, job_data(json.dumps(value)))


@replayed("jobs")
def test_a_job_that_failed_once(db: Database, data: bytes) -> None:
    check_job(db, job_data(data.decode()))


def check_spool_file(folder: Path, data: bytes) -> None:
    """A spool file is read or raises an error; jobs that were read can be sent."""
    path = folder / "suspect.json"
    path.write_bytes(data)
    try:
        spooled = read_spool_file(path)
    except BadEnvelopeError:
        return
    assert spooled
    for job in spooled:
        message = job.message
        again = read_envelope(envelope_text(job_data(message.envelope)))
        assert again == job.envelope
        assert message.queue in ("high", "medium", "low")
        (message.id + message.created_at).encode("ascii")


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spool")


@pytest.fixture(scope="module")
def good_files(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("good")
    made = [Path(write_spool(str(folder), number, sent)) for number, sent in enumerate(SENT[:9])]
    return [json.loads(path.read_bytes()) for path in made]


@fuzzed
@given(data=st.data())
def test_any_spool_file_is_read_or_refused(
    spool: Path, good_files: list[Any], data: st.DataObject
) -> None:
    check_spool_file(spool, data.draw(broken(altered(good_files).map(as_json))))


@replayed("spool")
def test_a_spool_file_that_failed_once(spool: Path, data: bytes) -> None:
    check_spool_file(spool, data)
