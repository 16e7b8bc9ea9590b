"""Checks of a running stack that all tests of this module share."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hivepipe.home import record_path
from hivepipe.queue.connection import connect
from hivepipe.queue.names import ALL_QUEUES
from tests.conftest import redis_files
from tests.outcome import outcome_of
from tests.sandbox import EVERY, ONE_OF_EACH, ROOT, Sandbox, eventually, mode, new_sandbox


@pytest.fixture(scope="module")
def stack() -> Iterator[Sandbox]:
    """A sandbox with a running stack, started from a shell with a few settings."""
    with new_sandbox() as made:
        settings = {"CHECKPOINT_INTERVAL": "5", "SESSION_ID": "mine"}
        shell = {f"HIVEPIPE_{name}": value for name, value in settings.items()}
        made.run("up", "-d", LC_TIME="C", **shell)
        yield made


def test_up_starts_redis_and_reports_a_healthy_status(stack: Sandbox) -> None:
    with connect(stack.socket) as client:
        assert client.ping()
        assert client.info("persistence")["aof_enabled"] == 1
        assert client.info("memory")["maxmemory_policy"] == "noeviction"
    assert Path(stack.socket).parent.parent == stack.run_folder / "hivepipe"
    report = stack.status()
    assert report["schema"] == 1
    assert report["healthy"] is True
    assert report["home"] == str(stack.home)
    eventually(lambda: stack.status()["queues"] == dict.fromkeys(ALL_QUEUES, 0))
    assert "healthy" in stack.run("status")


def test_hooks_of_a_started_project_push_to_its_redis(stack: Sandbox) -> None:
    before = stack.status()["accepted"]
    stack.fire()
    assert stack.status()["accepted"] == before + 1  # type: ignore[operator]
    assert stack.spooled == 0


def test_no_process_of_a_stack_has_a_connection_or_a_port(stack: Sandbox) -> None:
    stack.fire("s-2")
    eventually(lambda: "s-2" in stack.sessions())
    found = [process for group in stack.processes().values() for process in group]
    assert len(found) == len(EVERY)
    assert [each.net_connections("inet") for each in found if each.net_connections("inet")] == []


def test_all_files_are_private_with_any_umask(stack: Sandbox) -> None:
    with connect(stack.socket) as client:
        client.set("something", "to log")
    runtime = Path(stack.socket).parent
    state = Path(stack.env["XDG_STATE_HOME"])
    assert redis_files(stack.home)
    assert (stack.home / "logs" / "redis.log").stat().st_size
    tops = (stack.home, runtime.parent, state)
    for top in tops:
        for path in (top, *top.rglob("*")):
            assert path.is_symlink() or not mode(path) & 0o077, f"{path} {mode(path):o}"
    assert mode(stack.home) == 0o700


def test_a_second_up_changes_no_process(stack: Sandbox) -> None:
    before = stack.pids()
    stack.run("up", "-d")
    assert {kind: stack.pid(kind) for kind in before} == before


def test_the_stack_inherits_only_listed_variables(stack: Sandbox) -> None:
    inherited = psutil.Process(stack.pid("writer")).environ()
    assert inherited["HIVEPIPE_HOME"] == str(stack.home)
    assert inherited["HIVEPIPE_CHECKPOINT_INTERVAL"] == "5"
    assert "HIVEPIPE_SESSION_ID" not in inherited, "a stack serves every session"
    assert inherited["LC_TIME"] == "C"
    assert not [name for name in inherited if name.startswith(("CLAUDE", "PYTHON"))]


def test_another_runtime_folder_starts_no_second_stack(stack: Sandbox) -> None:
    other = stack.folder / "run2"
    other.mkdir(mode=0o700)
    stack.run("up", "-d", XDG_RUNTIME_DIR=str(other))
    assert stack.counts() == ONE_OF_EACH
    assert list(other.iterdir()) == []


def test_a_second_redis_worker_of_a_home_exits_75(stack: Sandbox) -> None:
    runtime = stack.folder / "run3"  # not even with another runtime folder
    runtime.mkdir(mode=0o700)
    record = Path(record_in(stack, str(stack.home)))
    record.rename(stack.folder / "record")
    script = (ROOT / "workers" / "redis.py").read_text()
    short_wait = script.replace("WAIT_SECS = 10", "WAIT_SECS = 1")
    assert short_wait != script
    second = outcome_of(
        [sys.executable, "-I", "-c", short_wait],
        stack.env | {"HIVEPIPE_HOME": str(stack.home), "XDG_RUNTIME_DIR": str(runtime)},
    )
    (stack.folder / "record").rename(record)
    assert second.returncode == 75
    assert "another process of hivepipe has locked" in second.stderr
    assert len(stack.processes()["redis"]) == 1


def record_in(stack: Sandbox, path: str) -> str:
    name = os.path.basename(record_path(path))
    return f"{stack.env['XDG_STATE_HOME']}/hivepipe/projects/{name}"


def test_logs_show_the_last_lines_of_all_processes_or_of_one(stack: Sandbox) -> None:
    output = stack.run("logs")
    assert any(line.startswith("redis ") for line in output.splitlines())
    assert any(line.startswith("supervisord ") for line in output.splitlines())
    log = stack.home / "logs" / "redis.log"
    before = log.read_text().splitlines()[-1]
    last = stack.run("logs", "redis", "--lines", "2").splitlines()
    assert len(last) == 2
    assert all(line.startswith("redis ") for line in last)
    written = log.read_text().splitlines()  # Redis may have written more meanwhile
    assert last[-1].removeprefix("redis").strip() in written[written.index(before) :]
    assert stack.run("logs", "redis", "-n", "0") == ""
    stack.run("logs", "postgres", expect=64)
    stack.run("logs", "-n", "-1", expect=64)


def test_logs_follow_a_rotation_and_escape_control_characters(stack: Sandbox) -> None:
    os.umask(0o077)
    log = stack.home / "logs" / "forwarder.log"  # of no process of this stack
    log.write_text("before\n")
    following = stack.start("logs", "-f", "forwarder")
    assert following.stdout is not None
    assert following.stdout.readline() == "forwarder   before\n"
    with log.open("a") as stream:
        stream.write("evil \x1b[31m")
        stream.flush()
        stream.write("line\n")
    assert following.stdout.readline() == "forwarder   evil \\x1b[31mline\n"
    with log.open("a") as stream:
        stream.write("last\n")
    log.rename(log.with_name("forwarder.log.1"))
    log.write_text("new\n")
    assert following.stdout.readline() == "forwarder   last\n"
    assert following.stdout.readline() == "forwarder   new\n"
    log.write_text("x\n")  # as a user who empties it
    assert following.stdout.readline() == "forwarder   x\n"
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=60)
    assert (following.returncode, err) == (0, "")
