"""Tasks: a cancellation reaches the next tool call, with or without a stack."""

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivepipe.cli.main import main
from hivepipe.db import tasks
from hivepipe.db.database import Database
from tests import payloads
from tests.conftest import Home, Server, Writer, fire, hook_answer, is_drained, until
from tests.hook_contract import checked
from tests.payloads import SESSION, changed

Command = Callable[..., str]


@pytest.fixture
def command(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `hivepipe task ...` and return its output."""
    private_home.use_environment(monkeypatch)
    monkeypatch.chdir(private_home.project)

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, ["task", *arguments])
        assert result.exit_code == code, result.output
        return result.output if code else result.stdout

    return run


def fire_checked(payload: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
    event = payload["hook_event_name"]
    return checked(event, hook_answer(event, payload, env))


def is_denied(home: Home, id: str = "t1", session: str = SESSION, **env: str) -> bool:
    call = changed(payloads.PRE_BASH, tool_use_id=id, session_id=session)
    return "permissionDecision" in fire_checked(call, home.with_env(**env))


def listed(command: Command) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(command("list", "--all", "--json"))["tasks"]
    return found


def test_a_task_goes_from_add_to_done(command: Command) -> None:
    task = command("add", "Split checkout.py").strip()
    assert command("progress", task[:8], "half of it").startswith(task)
    (row,) = listed(command)
    assert (row["id"], row["status"], row["text"]) == (task, "open", "Split checkout.py")
    assert row["progress"] == "half of it"
    assert task in command("list")
    assert "half of it" in command("show", task)
    command("done", task)
    assert task not in command("list")
    (row,) = listed(command)
    assert row["status"] == "done"
    assert row["finished_at"] >= row["created_at"]


def test_calls_of_a_cancelled_task_are_denied(
    private_home: Home, redis_server: Server, command: Command
) -> None:
    task = command("add", "Split checkout.py").strip()
    assert not is_denied(private_home, TASK_ID=task)
    command("cancel", task, "--reason", "no longer needed")
    call = changed(payloads.PRE_BASH, tool_use_id="t2")
    for mode in ("off", "tasks", "all"):
        output = fire_checked(call, private_home.with_env(TASK_ID=task, GUARD=mode))
        assert output["permissionDecision"] == "deny"
        assert f"Task {task} was cancelled." in output["permissionDecisionReason"]
        assert "\n> no longer needed\n" in output["permissionDecisionReason"]
    assert not is_denied(private_home, session="another")
    assert not is_denied(private_home, session="another", TASK_ID="task-other")


def test_a_cancelled_task_can_be_reopened(private_home: Home, command: Command) -> None:
    task = command("add", "x").strip()
    output = command("cancel", task)
    denial = fire_checked(payloads.PRE_BASH, private_home.with_env(TASK_ID=task))
    # an agent might run a command in the text that it reads
    assert "`" not in denial["permissionDecisionReason"]
    (way_back,) = [text for text in output.split("`") if text.startswith("hivepipe")]
    command(*way_back.split()[2:])
    assert not is_denied(private_home, TASK_ID=task)
    assert listed(command)[0]["status"] == "open"


def test_a_task_file_names_the_task(private_home: Home, command: Command, tmp_path: Path) -> None:
    task = command("add", "x").strip()
    command("cancel", task)
    file = tmp_path / "task"
    env = {**private_home.env, "TASK_FILE": str(file)}
    for text in ('{"taskId": "?", "agentId": "a"}', '{"task_id": "?"}', '{"id": "?"}', "?\nIt\n"):
        file.write_text(text.replace("?", task))
        assert fire_checked(payloads.PRE_BASH, env)["permissionDecision"] == "deny", text
    file.unlink()
    assert fire_checked(payloads.PRE_BASH, env) == {}
    for text in ("", "{", '{"id": 7}', "../../etc\n", "\0", "x y z"):
        file.write_text(text)
        assert fire_checked(payloads.PRE_BASH, env) == {}, text


def test_a_task_can_be_assigned_to_a_running_session(
    private_home: Home, redis_server: Server, command: Command
) -> None:
    assert not is_denied(private_home)
    task = command("add", "x", "--session", SESSION).strip()
    command("cancel", task)
    assert is_denied(private_home, "t2")
    other = command("add", "y").strip()
    command("assign", other, SESSION)
    assert not is_denied(private_home, "t3")
    for number in range(14):  # loops of a session with a task are denied
        is_denied(private_home, f"loop{number}")
    assert is_denied(private_home, "last")
    command("done", other)
    assert not is_denied(private_home, "after")


def test_a_cancellation_needs_no_redis(
    private_home: Home, command: Command, new_server: Callable[[Home], Server]
) -> None:
    task = command("add", "x").strip()
    command("cancel", task)
    assert is_denied(private_home, "down", TASK_ID=task)
    assert is_denied(private_home, "direct", TASK_ID=task, USE_QUEUE="false")
    server = new_server(private_home)
    assert is_denied(private_home, "up", TASK_ID=task)
    server.restart_empty()
    assert is_denied(private_home, "lost", TASK_ID=task)


def test_the_next_prompt_gets_one_warning_and_passes(
    private_home: Home, redis_server: Server, writer: Writer, command: Command
) -> None:
    task = command("add", "x").strip()
    env = private_home.with_env(TASK_ID=task)
    first, second, third = (
        changed(payloads.USER_PROMPT_SUBMIT, prompt_id=f"p{n}", prompt=f"Go on {n}")
        for n in range(3)
    )
    assert fire_checked(first, env) == {}
    command("cancel", task, "--reason", "wrong branch")
    context = fire_checked(second, env)["additionalContext"]
    assert f"Task {task} was cancelled." in context
    assert "\n> wrong branch\n" in context
    assert fire_checked(third, env) == {}
    assert "was cancelled" in str(fire_checked(changed(second, session_id="another"), env))
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    assert private_home.count("prompts") == 4
    command("reopen", task)
    command("cancel", task)
    assert "was cancelled" in str(fire_checked(changed(third, prompt_id="p9"), env))


def test_an_unknown_task_can_be_cancelled(private_home: Home, command: Command) -> None:
    output = command("cancel", "from-elsewhere", code=1)
    assert "no task has the id from-elsewhere (for a task that only" in output
    assert "--unknown" in output
    assert not is_denied(private_home, TASK_ID="from-elsewhere")
    assert listed(command) == []
    command("cancel", "from-elsewhere", "--unknown")
    assert is_denied(private_home, TASK_ID="from-elsewhere")
    assert listed(command)[0]["status"] == "cancelled"


def test_a_cancellation_works_with_a_locked_database(
    private_home: Home, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = command("add", "x").strip()
    monkeypatch.setattr("hivepipe.db.database.BUSY_TIMEOUT_SECS", 0.1)
    lock = sqlite3.connect(private_home.database, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    assert "locked" in command("cancel", task, code=1)
    lock.close()
    until(lambda: is_denied(private_home, TASK_ID=task), "the call is not denied")
    command("cancel", task)
    assert listed(command)[0]["status"] == "cancelled"


def test_a_secret_in_a_reason_is_stored_nowhere(private_home: Home, command: Command) -> None:
    secret = "ghp_" + "a1B2" * 9
    task = command("add", f"Use {secret}").strip()
    command("progress", task, secret)
    command("cancel", task, "--reason", f"leaked {secret}")
    kept = b"".join(path.read_bytes() for path in private_home.path.rglob("*") if path.is_file())
    assert b"leaked" in kept
    assert secret.encode() not in kept
    for path in private_home.path.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_an_invalid_id_is_reported_in_one_line(command: Command) -> None:
    command("add", "x", "--id", "taken")
    for arguments in (
        ("add", "x", "--id", "../up"),
        ("add", " "),
        ("add", "x", "--id", "a" * 129),
        ("add", "x", "--session", "no/id"),
        ("progress", "none", "x"),
        ("cancel", "no/id"),
        ("assign", "task", "no/id"),
    ):
        output = command(*arguments, code=1)
        assert output.startswith("hivepipe: ")
        assert output.count("\n") == 1
    assert command("add", "x", "--id", "").startswith("task-")


CHANGING = ("cancel", "done", "reopen", "progress", "assign")


def words_after(verb: str) -> list[str]:
    """Return the arguments of a command after the task's id."""
    return {"progress": ["p"], "assign": [SESSION]}.get(verb, [])


def test_an_empty_id_does_not_mean_the_only_task(command: Command) -> None:
    command("add", "x")
    for verb in (*CHANGING, "show"):
        assert "no task has the id" in command(verb, "", *words_after(verb), code=1)
    assert listed(command)[0]["status"] == "open"


def test_a_prefix_of_a_sessions_id_is_enough(
    private_home: Home, redis_server: Server, writer: Writer, command: Command
) -> None:
    writer.start()
    for session in ("shop-1", "shop-2", "till-1"):
        started = changed(payloads.SESSION_START, session_id=session)
        fire("SessionStart", started, private_home.env)
    until(lambda: len(private_home.rows("SELECT id FROM sessions")) == 3, "sessions are missing")
    task = command("add", "x").strip()
    assert command("assign", task, "till") == f"{task} is the task of session till-1\n"
    command("cancel", task)
    assert is_denied(private_home, session="till-1")
    assert "2 session ids begin with shop" in command("assign", task, "shop", code=1)
    assert "2 session ids" in command("add", "y", "--session", "shop", code=1)
    assert len(listed(command)) == 1
    for changes in (("assign", task, "til-1"), ("add", "y", "--session", "til-1")):
        output = command(*changes, code=1)
        assert "no session has the id til-1; close to it: till-1" in output
        assert "--unknown" in output
    assert len(listed(command)) == 1
    assert listed(command)[0]["session_id"] == "till-1"
    command("assign", task, "new-1", "--unknown")
    assert is_denied(private_home, session="new-1")


def test_ids_are_unique_and_may_be_abbreviated(command: Command) -> None:
    command("add", "x", "--id", "release-1")
    command("add", "y", "--id", "release-2")
    assert "already" in command("add", "z", "--id", "release-1", code=1)
    assert "2 task ids" in command("done", "release", code=1)
    assert "release-2" in command("done", "release-2")


def test_a_mistyped_id_is_an_error_with_similar_ids(command: Command) -> None:
    command("add", "x", "--id", "release-1")
    command("add", "y", "--id", "login")
    for verb in CHANGING:
        output = command(verb, "relaese-1", *words_after(verb), code=1)
        assert "no task has the id relaese-1; close to it: release-1" in output
        assert "login" not in output
    assert {row["id"]: row["status"] for row in listed(command)} == {
        "release-1": "open",
        "login": "open",
    }


def test_add_gives_a_text_to_a_task_known_from_a_session(
    private_home: Home, redis_server: Server, writer: Writer, command: Command
) -> None:
    fire("SessionStart", payloads.SESSION_START, private_home.with_env(TASK_ID="T-88"))
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    assert command("add", "Split it", "--id", "T-88") == "T-88\n"
    (row,) = listed(command)
    assert (row["text"], row["session_id"]) == ("Split it", SESSION)
    assert "already" in command("add", "Something else", "--id", "T-88", code=1)


def test_a_session_that_starts_with_a_task_is_stored_with_it(
    private_home: Home, redis_server: Server, writer: Writer, command: Command
) -> None:
    known = command("add", "Split it").strip()
    start = payloads.SESSION_START
    fire("SessionStart", start, private_home.with_env(TASK_ID=known, INSTANCE_ID="i1"))
    other = changed(payloads.PRE_BASH, session_id="another")
    fire("PreToolUse", other, private_home.with_env(TASK_ID="elsewhere", INSTANCE_ID="i2"))
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    found = {row["id"]: (row["session_id"], row["text"], row["status"]) for row in listed(command)}
    assert found == {known: (SESSION, "Split it", "open"), "elsewhere": ("another", None, "open")}


def test_parallel_commands_lose_no_task(command: Command, private_home: Home) -> None:
    def add(number: int) -> None:
        db = Database(private_home.database)
        with db.transaction():
            tasks.add_task(db, f"t{number}", "x", "2026-11-21T01:00:00.000Z")
        db.close()

    command("add", "first")
    threads = [threading.Thread(target=add, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(listed(command)) == 21


CHANGES = st.permutations(
    [
        ("add", "Split it", 1),
        ("state", "done", 2),
        ("state", "open", 3),
        ("state", "cancelled", 4),
        ("progress", "half", 2),
        ("progress", "all", 5),
        ("assign", "s1", 2),
        ("assign", "s2", 6),
    ]
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(CHANGES)
def test_the_order_of_arrival_makes_no_difference(
    tmp_path: Path, changes: list[tuple[str, str, int]]
) -> None:
    db = Database(tmp_path / "hive.db")
    with db.transaction():
        db.execute("DELETE FROM tasks", {})
        for what, text, second in changes:
            time, time_ns = f"2026-11-21T01:00:0{second}.000Z", second
            tasks.add_task(db, "t", text if what == "add" else "", time)
            if what == "state":
                tasks.set_task_state(db, "t", text, time, time_ns)
            elif what == "progress":
                tasks.set_task_progress(db, "t", text, time, time_ns)
            elif what == "assign":
                tasks.assign_task(db, "t", text, time, time_ns)
    (row,) = [dict(row) for row in db.rows("SELECT * FROM tasks")]
    db.close()
    assert (row["text"], row["status"], row["progress"]) == ("Split it", "cancelled", "all")
    assert (row["session_id"], row["created_at"]) == ("s2", "2026-11-21T01:00:01.000Z")
    assert row["updated_at"] == "2026-11-21T01:00:06.000Z"
    assert row["finished_at"] == "2026-11-21T01:00:04.000Z"
