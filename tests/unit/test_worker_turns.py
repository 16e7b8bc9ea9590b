"""Errors outside of jobs do not stop a worker."""

import math
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import fakeredis
import pytest
import redis

from hivepipe.db import clock_set_back, slots
from hivepipe.db.clock_set_back import ClockSteps
from hivepipe.db.database import Database
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.retry import is_store_error
from hivepipe.queue.claims import TROUBLE_KEY, Claim, Claimed
from hivepipe.stack.installed import installed
from hivepipe.worker import claiming_worker, writer
from hivepipe.worker.slow_worker import SlowWorker
from hivepipe.worker.status_line_file import StatusLineFile
from hivepipe.worker.writer import Writer
from tests.conftest import Home
from tests.store_scene import new_database

HOUR_NS = 3600 * 10**9


class Raises:
    """An export, a file or a script of which every call fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def tidy(self) -> None:
        raise self.error

    finish = retry_now = tidy


def worker(kind: type[Any], **attributes: object) -> Any:
    """Return a worker that is connected to nothing."""
    made = kind.__new__(kind)
    vars(made).update({"_logged_at": {}, **attributes})
    return made


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """A database that waits only 50 ms for a lock."""
    with closing(new_database(tmp_path / "hive.db", 0.05)) as made:
        yield made


def test_the_thread_of_a_worker_is_stopped_before_its_wait_ends() -> None:
    """Otherwise the thread might wait once more, and the worker's end would wait for the thread."""
    made = Mock()
    made_of = {"pubsub": made.pubsub, "pubsub_thread": made.thread, "log": made.log, "name": "one"}
    worker(SlowWorker, **made_of).unsubscribe()
    calls = [name for name, *_ in made.mock_calls]
    assert calls.index("thread.stop") < calls.index("pubsub.unsubscribe")


def test_a_lost_connection_for_commands_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    handler = worker(SlowWorker)._pubsub_exception_handler
    for _ in range(3):
        handler(redis.ConnectionError("Connection closed by server."), Mock(), Mock())
    (record,) = caplog.records
    assert record.levelname == "WARNING"


def test_a_bug_in_an_export_is_logged_once_and_stops_no_job(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A lost Redis is not taken for a bug."""
    bad = Raises(ValueError("Invalid isoformat string"))
    slow = worker(SlowWorker, _exports=bad, _session=bad, _status_line=bad)
    for _ in range(3):
        assert slow._prepare_claim() is False
    slow._before_leaving()
    said = [record.getMessage() for record in caplog.records]
    assert said.count("session.yaml: ValueError: Invalid isoformat string") == 1
    assert caplog.records[0].exc_info
    bad.error = redis.ConnectionError("gone")
    with pytest.raises(redis.ConnectionError):
        slow._prepare_claim()


def test_prices_that_cannot_be_read_leave_the_status_line_as_it_is(
    private_home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    new_database(private_home.database).close()
    (private_home.path / "prices.toml").write_text("[models.x")
    StatusLineFile(str(private_home.path)).tidy()
    (record,) = caplog.records
    assert "prices.toml" in record.getMessage()


def test_jobs_that_wait_for_the_disk_are_made_due_once_redis_answers_again() -> None:
    held = worker(Writer, _is_held_up=True, _claims=Raises(redis.ConnectionError("gone")))
    with pytest.raises(redis.ConnectionError):
        held._environment_works()
    calls: list[str] = []
    held._claims = SimpleNamespace(retry_now=lambda: calls.append("retry_now"))
    held._environment_works()
    held._environment_works()
    assert calls == ["retry_now"]


def test_a_locked_store_delays_the_correction_after_the_clock_was_set_back(db: Database) -> None:
    ahead = writer.time.time_ns() + HOUR_NS
    db.execute("INSERT INTO tasks (id, status, state_time_ns) VALUES ('t', 'open', :at)",
               {"at": ahead})  # fmt: skip
    own = worker(Writer, _db=db, _clock_steps=ClockSteps())
    other = sqlite3.connect(db.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for _ in range(3):  # a full Redis reports the step with each claim
        own._on_clock_set_back(3600.0)
    with pytest.raises(sqlite3.OperationalError):
        own._clock_steps.correct(db)
    other.execute("ROLLBACK")
    other.close()
    own._clock_steps.correct(db)
    own._clock_steps.correct(db)
    (row,) = db.rows("SELECT state_time_ns FROM tasks")
    assert ahead - HOUR_NS - 10**10 < row["state_time_ns"] < writer.time.time_ns()


@pytest.mark.parametrize(("days", "last"), [(40, 7), (0, 47)])
def test_slots_of_a_far_future_are_deleted_after_the_clock_was_set_back(
    db: Database, days: int, last: int
) -> None:
    """With them, the gap before a second step forward would not be found."""
    now = time.time_ns()
    slots.record_slot(db, "prune", 7, now)
    slots.record_slot(db, "prune", 47, now + days * 24 * HOUR_NS)
    clock_set_back.move_back(db, now, days * 24 * HOUR_NS)
    assert slots.last_slot(db, "prune") == last


@pytest.mark.parametrize(
    ("hours", "moved_hours"), [((-1, -1), 2), ((-1, 1), 0), ((-1, 1, -1), 1), ((-2, 1), 1)]
)
def test_several_steps_of_the_clock_count_as_one(
    db: Database, monkeypatch: pytest.MonkeyPatch, hours: tuple[int, ...], moved_hours: int
) -> None:
    now = time.time_ns()
    shift = 0
    monkeypatch.setattr(clock_set_back.time, "time_ns", lambda: now + shift)
    monkeypatch.setattr(clock_set_back.time, "monotonic_ns", lambda: 10**9)
    db.execute("INSERT INTO tasks (id, status, state_time_ns) VALUES ('t', 'open', :at)",
               {"at": now - 1})  # fmt: skip
    steps = ClockSteps()
    for hour in hours:
        shift += hour * HOUR_NS
        if hour < 0:
            steps.note(-hour * HOUR_NS)
    steps.correct(db)
    (row,) = db.rows("SELECT state_time_ns FROM tasks")
    assert row["state_time_ns"] == now - 1 - moved_hours * HOUR_NS


@pytest.mark.parametrize(
    ("error", "is_stores"),
    [
        (sqlite3.DatabaseError("database disk image is malformed"), True),
        (sqlite3.OperationalError("database is locked"), True),
        (sqlite3.IntegrityError("UNIQUE constraint failed"), False),
        (KeyError("bad"), False),
    ],
)
def test_only_an_error_of_the_store_is_retried_without_a_limit(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_stores: bool
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(writer, "execute_slow", fail)
    retried: list[object] = []
    failed: list[object] = []
    own = worker(
        Writer,
        _crash_marker=SimpleNamespace(record=lambda _id: None),
        _job_context=None,
        _store_failed=lambda jobs, _error: retried.append(jobs),
        _job_failed=lambda job, *_: failed.append(job),
    )
    envelope = SimpleNamespace(operation="conclude_session", session="s1")
    own._execute_here(Claimed("1", "low", b"", 0, True), envelope, [])
    assert (len(retried), len(failed)) == ((1, 0) if is_stores else (0, 1))
    assert is_store_error(error) is is_stores


@pytest.mark.parametrize(
    ("sql", "is_stores"),
    [
        ("SELECT sum(number) FROM numbers", False),
        ("SELECT number ->> 'x' FROM numbers WHERE number = '{'", False),
        ("SELECT * FROM missing", True),
        ("SELECT missing FROM numbers", True),
        ("INSERT INTO numbers (missing) VALUES (1)", True),
        ("INSERT INTO numbers VALUES (1) ON CONFLICT (number) DO NOTHING", True),
    ],
)
def test_a_database_of_another_schema_fails_no_job(sql: str, is_stores: bool) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE numbers (number)")
    connection.execute("INSERT INTO numbers VALUES (?), (1), ('{')", ((1 << 63) - 1,))
    with pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute(sql).fetchall()
    connection.close()
    assert is_store_error(raised.value) is is_stores


DAMAGED = sqlite3.DatabaseError("database disk image is malformed")
FULL = sqlite3.OperationalError("database or disk is full")


def writer_of(db: Database, **attributes: object) -> Any:
    """Return a writer without trouble, and without jobs that wait for the store."""
    return worker(
        Writer,
        connection=fakeredis.FakeRedis(),
        _db=db,
        _home=str(db.path.parent),
        _could_open=True,
        _trouble="",
        _is_held_up=False,
        _tried_at=-math.inf,
        _crash_marker=SimpleNamespace(record=lambda _id: None),
        _claims=SimpleNamespace(retry=lambda *_, **__: None, retry_now=lambda: None),
        **attributes,
    )


def fails_with(own: Any, error: sqlite3.Error) -> None:
    job = SimpleNamespace(operation="record_prompt", priority=6)
    own._store_failed([(Claimed("1", "low", b"", 0, True), job)], error)


@pytest.mark.parametrize(
    ("errors", "is_over"), [([DAMAGED], False), ([FULL], True), ([FULL, DAMAGED], True)]
)
def test_a_test_write_ends_the_trouble_unless_only_a_table_is_damaged(
    db: Database, errors: list[sqlite3.Error], is_over: bool
) -> None:
    own = writer_of(db)
    for error in errors:
        fails_with(own, error)
    assert own._is_ready()
    own._db.close()
    assert own.connection.hexists(TROUBLE_KEY, "since") is not is_over


def test_jobs_are_due_at_once_when_a_damaged_database_was_replaced(db: Database) -> None:
    own = writer_of(db)
    due: list[str] = []
    own._claims.retry_now = lambda: due.append("retry_now")
    fails_with(own, DAMAGED)
    good = db.path.read_bytes()
    db.path.write_bytes(b"x" * len(good))
    assert not own._is_ready()
    db.path.write_bytes(good)
    assert own._is_ready()
    own._db.close()
    assert due == ["retry_now"]


def test_a_store_that_fails_is_tried_less_and_less_often() -> None:
    claims = Mock()
    job = Envelope(id="job", operation="insert_agent", priority=3, payload={}, event_time_ns=0)
    own = worker(Writer, _claims=claims, _crash_marker=Mock(), _trouble="known")
    for attempts in range(10):
        held = Claimed("job", "high", b"", attempts, True)
        own._store_failed([(held, job)], sqlite3.OperationalError("database is locked"))
    delays = [call.args[0][0][2] for call in claims.retry.mock_calls]
    assert delays == [0.1, 0.2, 0.4, 1, 2, 4, 8, 16, 30, 30]


def test_jobs_that_nobody_takes_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    own = worker(Writer)
    for _ in range(3):
        own._warn_of_unclaimed(Claim([], None, newer=True, foreign=2))
    newer, foreign = (record.getMessage() for record in caplog.records)
    assert newer == "jobs of a newer hivepipe wait: upgrade this one"
    assert foreign == "2 jobs of another program in our queues"


def test_an_error_in_the_work_of_a_heartbeat_stops_no_job(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise PermissionError(13, "Permission denied", "/home/ann/.config/hivepipe/team.json")

    slow = worker(
        SlowWorker,
        _beat_at=-math.inf,
        _parent=os.getppid(),
        _version=installed(),
        _stop_requested=False,
        heartbeat=lambda: None,
        _on_heartbeat=fail,
    )
    slow._heartbeat_if_due()
    assert "team.json" in caplog.text


def test_a_worker_waits_for_a_redis_that_does_not_answer_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = [redis.TimeoutError("Timeout reading"), redis.ConnectionError("refused")]

    def bootstrap(_level: str) -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setattr(claiming_worker.time, "sleep", lambda _secs: None)
    slow = worker(
        SlowWorker,
        bootstrap=bootstrap,
        _stop_requested=False,
        _parent=os.getppid(),
        _address="/redis.sock",
        connection=fakeredis.FakeRedis(),
        name="slow",
        _crash_marker=SimpleNamespace(read=lambda: ""),
    )
    slow._register(None)
    assert errors == []


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("Link with MASTER is down and replica-serve-stale-data is set to 'no'.", True),
        ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", True),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", False),
    ],
)
def test_a_server_that_refuses_all_commands_is_away(text: str, is_it: bool) -> None:
    assert claiming_worker.is_away(redis.ResponseError(text)) is is_it
