"""A turn that the user interrupted becomes a pause, according to the client's status file."""

import json
import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.db.activity import record_activity
from hivepipe.db.database import Database
from hivepipe.hook.alive import start_time
from hivepipe.hook.instance import this_machine
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.archive import RecordUsage
from hivepipe.operations.families.history import RecordNotice
from hivepipe.operations.history import BY_A_PERSON, INTERRUPTED, record_notice
from hivepipe.operations.interrupted import SETTLED_NS, interrupted
from hivepipe.operations.usage import record_usage, usage_jobs
from hivepipe.times import stored_time
from tests.store_scene import new_database
from tests.unit.test_transcripts import totals_of_records
from tests.web_scene import insert

PID = os.getpid()
INSTANCE = "instance-1700000000-0123abcd"
NOW_NS = time.time_ns()
CALLED_NS = NOW_NS - 3 * SETTLED_NS
IDLE_NS = (NOW_NS - 2 * SETTLED_NS) // 10**6 * 10**6
JOB = Envelope(id="reap-1", operation="reap_sessions", priority=4, payload={}, event_time_ns=NOW_NS)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose session has an open call, and the folder of its client's status files."""
    host, boot, pid_space = this_machine()
    path = str(tmp_path / ".claude" / "projects" / "-shop" / "s1.jsonl")
    totals = {"calls": 1, "failed": 0, "denied": 0, "warned": 0}
    state = {"open_calls": 1, "turn_is_open": True, "last_work_at": None,
             "last_active_at": stored_time(CALLED_NS)}  # fmt: skip
    with closing(new_database(tmp_path / "hive.db")) as db, db.transaction():
        insert(db, "sessions", id="s1", status="active", turn="active", state_time_ns=CALLED_NS,
               transcript_path=path, project="/shop")  # fmt: skip
        insert(db, "instances", id=INSTANCE, pid=PID, pid_started=start_time(PID), host=host,
               boot=boot, pid_space=pid_space)  # fmt: skip
        insert(db, "instance_sessions", id="a", session_id="s1", instance_id=INSTANCE,
               status="active")  # fmt: skip
        record_activity(db, "s1", 1, totals, state)
    (tmp_path / ".claude" / "sessions").mkdir(parents=True)
    return tmp_path


def write_status(home: Path, at_ns: int = IDLE_NS, status: str = "idle") -> None:
    text = {"pid": PID, "sessionId": "s1", "status": status, "statusUpdatedAt": at_ns // 10**6}
    (home / ".claude" / "sessions" / f"{PID}.json").write_text(json.dumps(text))


def planned_jobs(home: Path) -> list[tuple[str, str, int]]:
    with closing(Database(home / "hive.db")) as db:
        messages = list(interrupted(db, JOB, this_machine()))
    envelopes = [json.loads(message.envelope) for message in messages]
    return [(each["id"], each["operation"], each["event_time_ns"]) for each in envelopes]


def execute(home: Path, sql: str) -> None:
    with closing(Database(home / "hive.db")) as db, db.transaction():
        db.execute(sql, {})


@pytest.mark.parametrize("status", ["idle", "shell"])
def test_an_interrupted_turn_is_paused_at_the_time_of_the_status(home: Path, status: str) -> None:
    write_status(home, status=status)
    messages = planned_jobs(home)
    assert [(operation, at_ns) for _, operation, at_ns in messages] == [
        ("pause_session", IDLE_NS),
        ("record_notice", IDLE_NS),
    ]
    assert planned_jobs(home) == messages, "the same ids, so the jobs take effect once"


def test_a_notification_after_the_end_of_a_question_changes_nothing(home: Path) -> None:
    write_status(home)
    late = stored_time(IDLE_NS + 10**9)
    execute(home, f"UPDATE activity SET waits_for = 'your permission', last_active_at = '{late}'")
    assert [operation for _, operation, _ in planned_jobs(home)] == [
        "pause_session",
        "record_notice",
    ]


def test_a_busy_or_waiting_client_is_not_interrupted(home: Path) -> None:
    assert planned_jobs(home) == [], "without a status file"
    for status in ("busy", "waiting"):
        write_status(home, status=status)
        assert planned_jobs(home) == []


def test_a_status_that_is_too_recent_or_older_than_the_call_is_ignored(home: Path) -> None:
    for at_ns in (NOW_NS, CALLED_NS - 10**9):
        write_status(home, at_ns)
        assert planned_jobs(home) == []


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE activity SET turn_is_open = 0",
        "UPDATE sessions SET status = 'paused'",
        "UPDATE instance_sessions SET status = 'detached'",
        "UPDATE instances SET pid_started = '1'",
    ],
)
def test_a_turn_that_is_over_or_of_a_dead_process_is_left_alone(home: Path, sql: str) -> None:
    write_status(home)
    execute(home, sql)
    assert planned_jobs(home) == []


def read_in_transcript(db: Database, *times_ns: int, session: str = "s1") -> None:
    """Record the ends of turns that a transcript has at these times."""
    words = {"role": "user", "content": "[Request interrupted by user for tool use]"}
    lines = [
        {"type": "user", "message": words, "sessionId": session, "uuid": f"u{at_ns}",
         "timestamp": stored_time(at_ns)} for at_ns in times_ns
    ]  # fmt: skip
    for job in usage_jobs([], totals_of_records(*lines).take_facts()):
        origin = Origin(id=f"u-{times_ns}", operation=job.operation, event_time_ns=NOW_NS)
        record_usage(db, origin, RecordUsage.read(job.payload))


def test_ends_in_a_transcript_are_noted_once(home: Path) -> None:
    """No hook and no status shows them if a prompt follows at once."""
    second_ns = IDLE_NS + SETTLED_NS
    notice = RecordNotice(kind=INTERRUPTED, text=BY_A_PERSON)
    with closing(Database(home / "hive.db")) as db, db.transaction():
        seen = Origin(id="seen", operation="", event_time_ns=IDLE_NS + 10**9, session="s1")
        record_notice(db, seen, notice)
        for _ in range(2):
            read_in_transcript(db, IDLE_NS, second_ns)
        read_in_transcript(db, IDLE_NS, session="unknown")
        late = Origin(id="late", operation="", event_time_ns=second_ns, session="s1")
        record_notice(db, late, notice)
        rows = db.rows("SELECT session_id, message, created_at FROM session_logs ORDER BY id")
    message = f"Interrupted: {BY_A_PERSON}"
    assert [tuple(row) for row in rows] == [
        ("s1", message, stored_time(IDLE_NS + 10**9)),
        ("s1", message, stored_time(second_ns)),
    ]
