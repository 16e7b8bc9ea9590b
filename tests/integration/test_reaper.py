"""Sessions whose Claude Code process died without SessionEnd are ended; sessions in use are not."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hivepipe.hook.alive import liveness_of, lives
from hivepipe.hook.instance import this_machine
from hivepipe.operations import reaper
from hivepipe.operations.declared import PERIODIC
from hivepipe.operations.reaper import MESSAGES_AT_A_TIME
from hivepipe.orchestrator import recorded_process
from hivepipe.queue.ticks import run_triggered, trigger
from tests.conftest import QUEUES, Home, Server, Writer, hook_path, until

(REAPER,) = [row for row in PERIODIC if row.operation == "reap_sessions"]
MANY = MESSAGES_AT_A_TIME + 50
# A stand-in for Claude Code that runs a hook for each input line: `<hook> <file with the event>`.
CLAUDE = """
import json, subprocess, sys
for line in sys.stdin:
    hook, event = line.split()
    with open(event, "rb") as data:
        done = subprocess.run([sys.executable, "-I", "-S", hook], stdin=data, capture_output=True)
    print(json.dumps([done.returncode, done.stdout.decode()]), flush=True)
"""


class ClaudeProcess:
    """A process that fires hooks as Claude Code does: it is their parent process."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", CLAUDE],
            env=home.env,
            cwd=home.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fire(self, name: str, session: str, **fields: Any) -> None:
        event = self.home.root / f"event-{self.process.pid}.json"
        event.write_text(json.dumps({"hook_event_name": name, "session_id": session, **fields}))
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{hook_path(name)} {event}\n")
        self.process.stdin.flush()
        code, output = json.loads(self.process.stdout.readline())
        assert code == 0
        assert output == "" or "hookSpecificOutput" in json.loads(output)  # the session continues

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Stack:
    """Redis, writer and scheduler of one home, and its Claude Code processes."""

    def __init__(self, home: Home, server: Server, writer: Writer, scheduler: Writer) -> None:
        self.home = home
        self.server = server
        self.writer = writer
        self.scheduler = scheduler
        self.claudes: list[ClaudeProcess] = []

    def claude(self) -> ClaudeProcess:
        self.claudes.append(ClaudeProcess(self.home))
        return self.claudes[-1]

    def write(self, sql: str, *parameters: Any) -> None:
        with closing(sqlite3.connect(self.home.database, timeout=10)) as db, db:
            db.executemany(sql, parameters)

    def session(self, name: str) -> dict[str, Any]:
        found = self.home.rows(f"SELECT * FROM sessions WHERE id = '{name}'")
        return found[0] if found else {}

    def until_started(self, name: str) -> None:
        until(lambda: self.session(name), f"no {name}")
        self.settle()

    def reap(self) -> None:
        """Run the reaper now, and wait until it and its follow-up jobs are done."""
        if not self.scheduler.is_running:
            self.scheduler.start()
        until(lambda: self.operations().get("reap_sessions"), "it did not run at the start")
        before = self.operations()["reap_sessions"]
        with self.server.client() as client:
            trigger(client, REAPER.name, "manual")
            run_triggered(client, [REAPER], time.time_ns())
        until(lambda: self.operations()["reap_sessions"] > before, "the reaper did not run")
        self.settle()

    def operations(self) -> dict[str, int]:
        with self.server.client() as client:
            found = client.hgetall("hivepipe:operations")
        return {name.decode(): int(count) for name, count in found.items()}

    def slots(self) -> list[dict[str, Any]]:
        return self.home.rows("SELECT * FROM slots WHERE name = 'reaper'")

    def settle(self) -> None:
        def is_quiet() -> bool:
            with self.server.client() as client:
                return not any(
                    client.llen(f"rq:queue:{queue}") or client.zcard(f"rq:wip:{queue}")
                    for queue in QUEUES
                )

        until(is_quiet, "not settled")


@pytest.fixture
def stack(
    private_home: Home, redis_server: Server, writer: Writer, new_worker: Callable[[str], Writer]
) -> Iterator[Stack]:
    writer.start()
    made = Stack(private_home, redis_server, writer, new_worker("scheduler"))
    yield made
    for claude in made.claudes:
        claude.kill()


def test_a_session_of_a_killed_process_is_ended_with_the_reason(stack: Stack) -> None:
    claude = stack.claude()
    claude.fire("SessionStart", "s-1", source="startup", model="opus")
    claude.fire("Stop", "s-1")
    stack.until_started("s-1")
    stack.reap()
    assert stack.session("s-1")["status"] == "paused"  # its process lives
    markers = [
        stack.home.path / "instances" / str(claude.process.pid),
        stack.home.path / "instances" / f"{claude.process.pid}.settings",
        stack.home.path / "sessions" / f".session_{claude.process.pid}",
        stack.home.path / ".active_session",
    ]
    assert all(path.exists() for path in markers)
    last_event = stack.session("s-1")["updated_at"]
    claude.kill()
    stack.reap()
    row = stack.session("s-1")
    assert (row["status"], row["end_reason"]) == ("ended", "process gone")
    assert row["ended_at"] == last_event  # the time of the last event, not that of the reaper's run
    (instance,) = stack.home.rows("SELECT * FROM instances")
    assert instance["status"] == "gone"
    (assignment,) = stack.home.rows("SELECT * FROM instance_sessions")
    assert assignment["status"] == "detached"
    assert not any(path.exists() for path in markers)
    ended = stack.operations()
    assert ended["end_session"] == 1
    with stack.server.client() as client:
        found = [client.hgetall(key) for key in client.scan_iter("rq:job:*")]
    (created,) = {job[b"created_at"] for job in found if job[b"description"] == b"end_session"}
    # Its latency is that of the reaper, not the time since the last event.
    assert created in {
        job[b"created_at"] for job in found if job[b"description"] == b"reap_sessions"
    }
    stack.reap()  # nothing is left to do
    assert stack.session("s-1") == row
    after = stack.operations()
    assert after.pop("reap_sessions") == ended.pop("reap_sessions") + 1
    # Without other periodic operations, some of which run at the end of a session.
    by_clock = ("cleanup_agents", "raise_alerts", "check_hives", "drop_dead_workers")
    assert {name: n for name, n in after.items() if name not in by_clock} == {
        name: n for name, n in ended.items() if name not in by_clock
    }


def test_a_resumed_session_is_not_ended_by_the_death_of_its_first_process(stack: Stack) -> None:
    first, second = stack.claude(), stack.claude()
    first.fire("SessionStart", "s-1", source="startup")
    first.kill()
    second.fire("SessionStart", "s-1", source="resume")
    stack.until_started("s-1")
    stack.reap()
    assert stack.session("s-1")["status"] == "active"
    found = stack.home.rows("SELECT status FROM instance_sessions ORDER BY assigned_time_ns")
    assert [row["status"] for row in found] == ["detached", "active"]
    second.kill()
    stack.reap()
    assert stack.session("s-1")["status"] == "ended"


def test_a_session_in_two_terminals_ends_with_the_second(stack: Stack) -> None:
    first, second = stack.claude(), stack.claude()
    for claude in (first, second):
        claude.fire("SessionStart", "s-1", source="startup")
    stack.until_started("s-1")
    first.fire("SessionEnd", "s-1", reason="prompt_input_exit")
    stack.settle()
    assert stack.session("s-1")["status"] == "active"
    assert (stack.home.path / ".active_session").exists()
    second.fire("SessionEnd", "s-1", reason="prompt_input_exit")
    until(lambda: stack.session("s-1")["status"] == "ended", "it is not ended")
    stack.settle()
    done = stack.operations()
    assert done["conclude_session"] == 2
    with stack.server.client() as client:
        (waiting,) = client.lrange("rq:queue:slow", 0, -1)
        assert client.hget(b"rq:job:" + waiting, "description").startswith(b"finish_process")
    assert not (stack.home.path / ".active_session").exists()


def test_any_event_reopens_a_session(stack: Stack) -> None:
    """An event that is only a heartbeat reopens a session too."""
    claude = stack.claude()
    events = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")
    for event in events:
        claude.fire("SessionStart", event, source="startup")
        claude.fire("SessionEnd", event, reason="other")
        until(lambda id=event: stack.session(id).get("status") == "ended", "it is not ended")
        claude.fire(event, event, tool_name="Read", tool_input={"file_path": "/x"})
        until(lambda id=event: stack.session(id)["status"] != "ended", "it stays ended")
        stack.settle()
        started = stack.operations()["start_session"]
        claude.fire(event, event, tool_name="Read", tool_input={"file_path": "/y"})
        stack.settle()
        assert stack.operations()["start_session"] == started  # once, not for each call
        stack.reap()
        assert stack.session(event)["status"] != "ended"


def test_a_queued_resume_overrides_the_reaper(stack: Stack) -> None:
    """The reaper saw the old process dead while the event that resumes the session was queued."""
    first, second = stack.claude(), stack.claude()
    first.fire("SessionStart", "s-1", source="startup")
    stack.until_started("s-1")
    first.kill()
    stack.scheduler.start()
    stack.reap()
    assert stack.session("s-1")["status"] == "ended"
    ended = stack.session("s-1")
    stack.writer.end()
    second.fire("SessionStart", "s-1", source="resume")
    stack.writer.start()
    until(lambda: stack.session("s-1")["status"] == "active", "it stays ended")
    assert stack.session("s-1")["state_time_ns"] > ended["state_time_ns"]
    stack.reap()
    assert stack.session("s-1")["status"] == "active"


def test_a_session_is_ended_again_after_a_late_event(stack: Stack) -> None:
    """The reaper ended the session just before its last event, and ends it again afterwards."""
    claude = stack.claude()
    claude.fire("SessionStart", "s-1", source="startup")
    stack.until_started("s-1")
    stack.writer.end()
    claude.fire("Stop", "s-1")
    claude.kill()
    with stack.server.client() as client:
        client.rename("rq:queue:high", "held")
        stack.writer.start()
        stack.reap()
        assert stack.session("s-1")["status"] == "ended"
        client.rename("held", "rq:queue:high")
    until(lambda: stack.session("s-1")["status"] != "ended", "the event was not applied")
    stack.settle()
    stack.reap()
    row = stack.session("s-1")
    assert (row["status"], row["end_reason"]) == ("ended", "process gone")


def operations(stack: Stack) -> int:
    (row,) = stack.home.rows("SELECT operation_count FROM instance_sessions")
    return int(row["operation_count"])


def test_the_operations_of_a_killed_process_are_counted(stack: Stack) -> None:
    """Claude Code was killed during a turn, so no Stop stored the total."""
    claude = stack.claude()
    claude.fire("SessionStart", "s-1", source="startup")
    for number in range(3):
        edit = {"tool_name": "Edit", "tool_use_id": f"t{number}", "tool_input": {"file_path": "/a"}}
        claude.fire("PostToolUse", "s-1", **edit)
    stack.until_started("s-1")
    assert operations(stack) == 1
    claude.kill()
    stack.reap()
    assert operations(stack) == 3


def test_a_killed_process_is_counted_after_a_later_one_got_its_pid(private_home: Home) -> None:
    """As in a container that is started again."""
    file = private_home.path / "instances" / "7"
    file.parent.mkdir(parents=True)
    file.write_text("id=i-2\npid=7\nstarted=9\nsession=s-1\nend\n")
    file.with_suffix(".checkpoint").write_text("t 5 5\ns i-1:s-1 3 1\ns i-2:s-1 2 1\n")
    row: Any = {"instance_id": "i-1", "session_id": "s-1", "pid": 7}
    assert reaper._totals(str(private_home.path), row, 9).operations == 3
    gone: Any = {"instance_id": "i-1", "session_id": "s-1", "pid": 8}
    assert reaper._totals(str(private_home.path), gone, 9).operations is None
    assert len(list(file.parent.iterdir())) == 2, "no file that nothing removes"


def test_counts_stay_while_a_raw_event_waits(stack: Stack) -> None:
    claude = stack.claude()
    claude.fire("SessionStart", "s-1", source="startup")
    stack.until_started("s-1")
    newer = stack.home.path / "spool" / "01795000000000000000_1.raw"  # of a newer hivepipe
    newer.parent.mkdir(mode=0o700, exist_ok=True)
    newer.write_bytes(b"HPv2")
    claude.kill()
    stack.reap()
    assert stack.session("s-1")["status"] == "ended"
    assert (stack.home.path / "instances" / f"{claude.process.pid}.checkpoint").exists()


def test_a_session_left_by_its_process_is_ended(stack: Stack) -> None:
    claude = stack.claude()
    claude.fire("SessionStart", "s-1", source="startup")
    claude.fire("SessionStart", "s-2", source="clear")  # without a SessionEnd of the first session
    stack.until_started("s-2")
    stack.reap()
    assert stack.session("s-1")["end_reason"] == "left by its process"
    assert stack.session("s-2")["status"] == "active"


def test_processes_that_cannot_be_checked_are_not_dead(stack: Stack) -> None:
    """Processes of other machines, containers and launchers count as alive for a week."""
    claude = stack.claude()
    claude.fire("SessionStart", "here", source="startup")
    stack.until_started("here")
    (known,) = stack.home.rows("SELECT * FROM instances")
    others = {
        "machine": {**known, "host": "elsewhere", "boot": "another-boot"},
        "container": {**known, "pid_space": "pid:[1]"},
        "restarted": {**known, "boot": "another-boot"},
        "launcher": {**known},
        "silent": {**known, "host": "elsewhere", "boot": "another-boot"},
    }
    now = datetime.now(UTC)
    for number, (name, row) in enumerate(others.items()):
        ours = f"instance-1-{number:08x}"
        instance = "tests-own" if name == "launcher" else ours
        age = timedelta(days=8 if name == "silent" else 6)
        at = (now - age).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        values = {**row, "id": instance, "pid": 2**22 + number, "last_seen": at}
        columns = ", ".join(values)
        marks = ", ".join("?" * len(values))
        stack.write(f"INSERT INTO instances ({columns}) VALUES ({marks})", [*values.values()])
        stack.write(
            "INSERT INTO sessions (id, status, updated_at) VALUES (?, 'active', ?)", (name, at)
        )
        stack.write(
            """INSERT INTO instance_sessions
                 (id, session_id, instance_id, status, assigned_time_ns, last_seen)
               VALUES (?, ?, ?, 'active', 1, ?)""",
            (name, name, instance, at),
        )
    stack.reap()
    reasons = {name: stack.session(name)["end_reason"] for name in others}
    assert reasons == {
        "machine": None,
        "container": None,
        "restarted": "machine restarted",
        "launcher": None,
        "silent": "silent for a week",
    }
    assert stack.session("here")["status"] == "active"


def test_many_dead_sessions_are_ended_in_one_run(stack: Stack) -> None:
    claude = stack.claude()
    claude.fire("SessionStart", "alive", source="startup")
    stack.until_started("alive")
    host, boot, pid_space = this_machine()
    names = [f"dead-{number}" for number in range(MANY)]
    ids = [f"instance-1-{number:08x}" for number in range(MANY)]
    stack.write(
        """INSERT INTO sessions (id, status, updated_at, state_time_ns, swarm_id)
           VALUES (?, 'paused', '2026-01-01T00:00:00.000Z', 1767225600000000000, 'none')""",
        *[(name,) for name in names],
    )
    stack.write(
        """INSERT INTO instances (id, pid, pid_started, host, boot, pid_space, last_seen)
           VALUES (?, ?, '1', ?, ?, ?, '2026-01-01T00:00:00.000Z')""",
        *[(id, os.getpid(), host, boot, pid_space) for id in ids],  # a pid that was reused
    )
    stack.write(
        """INSERT INTO instance_sessions (id, session_id, instance_id, status, assigned_time_ns)
           VALUES (?, ?, ?, 'active', 1767225600000000000)""",
        *[(f"{i}:{n}", n, i) for n, i in zip(names, ids, strict=True)],
    )
    runs = len(stack.slots())
    stack.reap()
    reasons = stack.home.rows(
        "SELECT status, end_reason, count(*) AS n FROM sessions GROUP BY 1, 2 ORDER BY 1"
    )
    assert reasons == [
        {"status": "active", "end_reason": None, "n": 1},
        {"status": "ended", "end_reason": "process gone", "n": MANY},
    ]
    assert len(stack.slots()) <= runs + 2
    gone = stack.home.rows("SELECT count(*) AS n FROM instances WHERE status = 'gone'")
    assert gone == [{"n": MANY}]
    with stack.server.client() as client:
        assert not client.zcard("rq:failed:high") + client.zcard("rq:failed:medium")


def test_old_instance_files_of_hooks_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "instances"
    folder.mkdir()
    (tmp_path / "elsewhere").write_text("id=linked\n")
    marker = "id=instance-1-0000002a\npid=42\nstarted=1\nsession=s-1\nend\n"
    ours = {
        "42": marker,
        "42.checkpoint": "1 2 3",
        "42.settings": "pid=42\nstarted=1\n",
        "43": "",  # its hook was killed
        "a-launchers": marker.replace("instance-1-0000002a", "a-launchers"),
    }
    others = {
        "1984": "notes on a book",
        "notes.txt": "id=notes\n",
        ".instance_pts_9": "instance-9\n",
        "todo.checkpoint": "mine",
        "empty": "",
    }
    for name, text in (ours | others).items():
        (folder / name).write_text(text)
    for name in (*ours, *others):
        os.utime(folder / name, (time.time() - 40 * 86_400,) * 2)
    (folder / "44").write_text(marker.replace("42", "44"))  # of today
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "45").mkdir()
    os.utime(tmp_path / "elsewhere", (time.time() - 40 * 86_400,) * 2)
    reaper._remove_files(str(tmp_path), set())
    assert {path.name for path in folder.iterdir()} == {*others, "44", "linked", "45"}
    reaper._remove_files(str(tmp_path), {"instance-1-0000002a", "notes"})
    assert {path.name for path in folder.iterdir()} == {*others, "linked", "45"}


# ---- which processes are dead
def row(pid: int, **more: Any) -> dict[str, Any]:
    host, boot, pid_space = this_machine()
    return {
        "id": "instance-1-00000000",
        "pid": pid,
        "pid_started": "",
        "host": host,
        "boot": boot,
        "pid_space": pid_space,
        **more,
    }


def test_a_zombie_is_dead_and_a_stopped_process_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert liveness_of(row(child.pid), this_machine()).lives is True
        child.send_signal(signal.SIGSTOP)
        assert liveness_of(row(child.pid), this_machine()).lives is True
        child.kill()
        stat = Path(f"/proc/{child.pid}/stat")
        until(lambda: ") Z " in stat.read_text(), "no zombie")
        assert liveness_of(row(child.pid), this_machine()) == (False, "process gone")
    finally:
        child.kill()
        child.communicate()
    assert not lives(child.pid, "")


def test_a_reused_pid_is_another_process() -> None:
    assert lives(os.getpid(), "")
    assert not lives(os.getpid(), "1")
    assert not lives(0, "")
    assert not lives(-1, "")


def test_processes_of_other_machines_are_unknown() -> None:
    for more in (
        {"host": "elsewhere", "boot": "another"},
        {"host": "elsewhere", "boot": None},
        {"host": "elsewhere", "pid_space": None},  # perhaps a container: same boot, other pids
        {"pid_space": "pid:[1]"},
        {"id": "named"},
        {"pid": None},
    ):
        assert liveness_of(row(2**22 + 1) | more, this_machine()).lives is None, more


def test_a_process_is_known_after_its_machine_was_renamed() -> None:
    host, *boot_and_pid_space = this_machine()
    named_before = " ".join(["elsewhere", *boot_and_pid_space])
    for pid, lives_on in ((os.getpid(), True), (2**22 + 1, False)):
        assert liveness_of(row(pid, host="elsewhere"), this_machine()).lives is lives_on
        assert recorded_process.lives(pid, "", named_before) is lives_on
        assert recorded_process.lives(pid, "", f"{host} another -") is False
        assert recorded_process.lives(pid, "", "elsewhere another -") is None


def test_rows_without_a_machine_are_checked_by_pid() -> None:
    old = {"boot": None, "pid_space": None}
    assert liveness_of(row(os.getpid(), **old), this_machine()).lives is True
    assert liveness_of(row(2**22 + 1, **old), this_machine()).lives is False
