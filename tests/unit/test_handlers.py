"""Operations: each is declared in one file, and its handler is imported when it is needed."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import pytest

from hivepipe.db.agents import AgentSignal, record_signal
from hivepipe.db.applied import is_applied, mark_applied
from hivepipe.db.assignments import note_instance, raise_totals
from hivepipe.db.database import Database
from hivepipe.db.forget import is_forgotten, remove_rows
from hivepipe.db.history import insert_prompt
from hivepipe.db.legacy_rows import import_row
from hivepipe.db.profiles import add_profile, change_profile
from hivepipe.db.session_state import note_signal
from hivepipe.db.sessions import save_checkpoint, session_exists, upsert_session
from hivepipe.db.summaries import record_summary
from hivepipe.db.tasks import add_task, set_task_state
from hivepipe.events.job_plan import Job
from hivepipe.jobs.about_session import AboutSession
from hivepipe.jobs.agent_expiry import moment
from hivepipe.jobs.args import Args
from hivepipe.jobs.envelope import follow_up, read_envelope, redacted
from hivepipe.jobs.origin import Origin
from hivepipe.jobs.summary import RecordSummary
from hivepipe.operations.declared import OPERATIONS, handler_of
from hivepipe.operations.job_context import JobContext
from hivepipe.worker.group_commit import commit_batch
from tests.store_scene import apply, job_of


def test_a_handler_takes_the_args_of_its_operation() -> None:
    for operation, args in OPERATIONS.items():
        handler = handler_of(operation)
        assert handler.__name__ == operation
        place, origin, takes, _ = get_type_hints(handler).values()
        assert place is (Database if args.queue is None else JobContext), operation
        assert origin is Origin
        assert takes is args or (takes is Args and not args._types)


@pytest.mark.parametrize(
    ("module", "loads"),
    [("hivepipe.direct", set()), ("hivepipe.run_job", {"redis", "importlib.metadata"})],
)
def test_executing_a_job_imports_no_other_handler_first(module: str, loads: set[str]) -> None:
    modules = run(f"import sys, {module}; print(*sys.modules)")
    own = {"hivepipe.operations.cleanup", "hivepipe.operations.summaries"}
    heavy = own | {"redis", "importlib.metadata"}
    assert heavy & set(modules.split()) == loads


FAMILY = """
from hivepipe.jobs.args import HERE, Args, Every

class WaterPlants(
    Args,
    handler="families.plants.water_plants",
    priority=7,
    queue=HERE,
    every=Every(60, "plants", "plants wither"),
):
    litres: int = 1

def water_plants(_place, job, args):
    print(job.operation, args.litres)
"""
USE = """
from hivepipe.operations import families
families.__path__.append({folder!r})
from hivepipe.jobs.envelope import compose, read_envelope
from hivepipe.operations.declared import OPERATIONS, PERIODIC, handle
message = compose("one", OPERATIONS["water_plants"](litres=3).job(), 1)
handle(None, read_envelope(message.envelope))
print(message.queue, *(row.name for row in PERIODIC if row.operation == "water_plants"))
"""


def test_a_periodic_operation_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "plants.py").write_text(FAMILY)
    assert run(USE.format(folder=str(tmp_path))) == "water_plants 3\nlow plants\n"


def test_only_the_users_prompts_of_an_older_release_are_stored(db: Database) -> None:
    for instance, prompt in (("i-1", "<task-notification>\n<task-id>a1"), ("i-2", "Mend it.")):
        apply(db, "record_prompt", instance=instance, prompt=prompt)
    assert [row["prompt"] for row in db.rows("SELECT prompt FROM prompts")] == ["Mend it."]


def run(code: str) -> str:
    arguments = [sys.executable, "-I", "-c", code]
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "text",
    [None, "null", "[1]", "{torn", "plain text", '{"said_ns":1}', '{"said_ns":{"objective":"x"}}'],
)
def test_an_imported_session_is_recorded_again_whatever_its_columns_hold(
    db: Database, text: str | None
) -> None:
    row = {"id": "s-1", "metadata": text, "checkpoint_data": text, "updated_at": "2024"}
    with db.transaction():
        import_row(db, "sessions", row, "import-1")
    apply(db, "start_session", title="Mend it", source="resume")
    apply(db, "update_instance", op_count=3)
    (session,) = db.rows("SELECT status, objective FROM sessions")
    assert tuple(session) == ("active", "Mend it")


def test_a_rule_that_matches_words_of_the_code_changes_no_state(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.redact.fields.redact_text", lambda text: "***")
    time = "2026-01-01T00:00:00.000Z"
    job = Origin(id="1", operation="pause", event_time_ns=10**18, session="***", instance="***")
    upsert_session(db, job, "***", AboutSession())
    note_instance(db, job)
    note_signal(db, job, "paused")
    record_signal(db, job, AgentSignal(agent_id="***", status="failed"))
    add_task(db, "***", "Mend it.", time)
    set_task_state(db, "***", "done", time, time_ns=1)
    add_profile(db, "***", time)
    change_profile(db, "***", "lead", None, time)
    states = [
        db.rows(f"SELECT {column} FROM {table}")[0][column]
        for table, column in (
            *((table, "status") for table in ("swarms", "sessions", "agents", "tasks")),
            *(("instance_sessions", "status"), ("profiles", "role")),
        )
    ]
    assert states == ["active", "paused", "failed", "done", "active", "lead"]


@pytest.mark.usefixtures("rule_of_digits")
def test_a_rule_of_the_user_changes_no_key_and_no_time(db: Database) -> None:
    session, model = "12345678-1234-4234-8234-123456789012", "claude-opus-4-20250514"
    job = Origin(
        id="1234567890abcdef", operation="any", event_time_ns=1_790_000_000 * 10**9,
        session=session, instance="instance-1234567890"
    )  # fmt: skip
    transcript = f"/home/1234/{session}.jsonl"
    started = AboutSession(
        title="ask 1234", transcript_path=transcript, model=model, source="startup"
    )
    assert mark_applied(db, job)
    for step in range(3):
        later = replace(job, event_time_ns=job.event_time_ns + step)
        assert upsert_session(db, later, "swarm-12345678", started)
    note_instance(db, job)
    raise_totals(db, job, 5, 1)
    save_checkpoint(db, job, "auto", "1234")
    record_signal(db, job, AgentSignal(agent_id="toolu_12345678", status="running"))
    insert_prompt(db, job, "prompt-1234", "call 1234")
    made = RecordSummary(
        state="compaction 1234", made_at=job.time, kind="plain", summary="told 1234"
    )
    record_summary(db, session, made)
    assert session_exists(db, session)
    assert is_applied(db, job.id)
    rows = {
        table: dict(db.rows(f"SELECT * FROM {table}")[0])
        for table in (
            *("applied", "sessions", "instance_sessions", "agents", "prompts"),
            "summaries",
        )
    }
    remove_rows(db, [session])
    assert is_forgotten(db, session)
    assert not db.rows("SELECT 1 FROM prompts")
    of_session, of_agent = rows["sessions"], rows["agents"]
    assert of_session["model"] == model
    assert of_session["objective"] == "ask DIGITS"
    assert of_session["transcript_path"] == transcript
    assert rows["summaries"]["state"] == "compaction 1234"
    assert rows["summaries"]["summary"] == "told DIGITS"
    assert of_session["created_at"] == job.time
    assert json.loads(of_session["metadata"])["said_ns"]["model"] == job.event_time_ns + 2
    checkpoint = json.loads(of_session["checkpoint_data"])
    assert checkpoint["timestamp"] == job.time
    assert checkpoint["trigger"] == "DIGITS"
    assert of_agent["id"] == "toolu_12345678"
    assert of_agent["session_id"] == session
    assert moment(json.loads(of_agent["metadata"])["lifecycle"]["expires_at"])
    assert rows["instance_sessions"]["id"] == f"{job.instance}:{session}"
    assert rows["prompts"]["prompt_id"] == "prompt-1234"
    assert rows["prompts"]["prompt"] == "call DIGITS"
    assert "DIGITS" not in rows["applied"]["applied_at"]


@pytest.mark.usefixtures("rule_of_digits")
def test_a_failed_job_can_be_retried_whatever_the_rules_of_the_user_match() -> None:
    job = Origin(id="1", operation="any", event_time_ns=1_790_000_000 * 10**9, session="s-12345678")
    prompt: dict[str, object] = {"prompt": "1234", "prompt_id": "p-1234"}
    message = follow_up(job, Job("record_prompt", prompt, ""))
    before, after = read_envelope(message.envelope), read_envelope(redacted(message.envelope))
    assert after == replace(before, payload={"prompt": "DIGITS", "prompt_id": "p-1234"})


@pytest.mark.usefixtures("rule_of_digits")
def test_a_secret_in_place_of_a_key_is_redacted(db: Database) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    db.insert("tasks", {"id": secret, "status": "open"})
    assert secret not in db.rows("SELECT id FROM tasks")[0]["id"]


def test_counts_that_overflow_fail_their_job_alone(db: Database) -> None:
    largest = (1 << 63) - 1
    jobs = [
        job_of("start_session", source="startup"),
        job_of("update_instance", op_count=largest),
        job_of("start_session", instance="i-2", source="startup"),
        job_of("update_checkpoint", instance="i-2", op_count=1, type="auto"),
        job_of("record_prompt", prompt="Mend it."),
    ]
    outcome = commit_batch(db, jobs)
    (session,) = db.rows("SELECT status FROM sessions")
    assert (outcome.committed, [*outcome.failed]) == ([0, 1, 2, 4], [3])
    assert "integer overflow" in str(outcome.failed[3])
    assert session["status"] == "active"


COUNTS: list[tuple[object, int]] = [
    *((12, 15), ("12", 15), (12.0, 15), ("12.0", 15)),
    *(((1 << 63) - 1, 3), (-1, 3), ("many", 3), (1.5, 3), ("1.5", 3), (1e300, 3), (None, 3)),
    *(("inf", 3), ("nan", 3), ("1" * 5000, 3), (10**400, 3)),
]


def test_an_imported_count_counts_if_it_is_a_whole_number(db: Database) -> None:
    for number, (count, total) in enumerate(COUNTS):
        id = f"s{number}"
        of = {"session_id": id, "instance_id": f"i{number}"}
        with db.transaction():
            import_row(db, "sessions", {"id": id}, f"import-{number}")
            row = {**of, "id": f"{number}", "operation_count": count}
            import_row(db, "instance_sessions", row, f"import-of-{number}")
        own = {"session": id, "instance": f"own-{number}"}
        apply(db, "start_session", source="resume", **own)
        apply(db, "update_checkpoint", op_count=3, type="auto", **own)
        (session,) = db.rows("SELECT checkpoint_data FROM sessions WHERE id = :id", {"id": id})
        assert json.loads(session["checkpoint_data"])["operationCount"] == total, count


@pytest.mark.parametrize("time", ["yesterday", "9999-12-31T23:59:59Z"])
def test_an_imported_agent_is_recorded_again_whatever_its_times_hold(
    db: Database, time: str
) -> None:
    agent = {"id": "a1", "swarm_id": "w1", "session_id": "s-1", "last_active": time}
    with db.transaction():
        import_row(db, "swarms", {"id": "w1"}, "import-1")
        import_row(db, "agents", agent, "import-2")
    apply(db, "start_session", swarm="w1", source="resume")
    apply(db, "start_agent", agent_id="a1", type="Explore")
    (row,) = db.rows("SELECT type FROM agents")
    assert row["type"] == "Explore"
