"""restart, logs, stacks, down --all, and commands that run in parallel."""

import json
import os
import posix
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
import redis

from hivepipe.home import locate, read_record
from hivepipe.queue.connection import connect
from hivepipe.stack.all_stacks import known_stacks
from hivepipe.stack.lifecycle import take_all_down
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import ProcessTable
from tests.faults.injections.disks import mounted, run
from tests.outcome import outcome_of
from tests.rounds import rounds
from tests.sandbox import EVERY, ONE_OF_EACH, Sandbox, eventually


def paths_below(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def state_of(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(
        posix, "environ", {os.fsencode(k): os.fsencode(v) for k, v in sandbox.env.items()}
    )
    return read_record(str(sandbox.project))["state"]


def listed_stacks(sandbox: Sandbox) -> list[dict[str, object]]:
    report = json.loads(sandbox.run("stacks", "--json"))
    assert report["schema"] == 1
    return list(report["stacks"])


def test_down_leaves_one_database_file_and_no_process_and_up_restores_the_data(
    sandbox: Sandbox,
) -> None:
    sandbox.run("up", "-d")
    assert paths_below(sandbox.run_folder)
    sandbox.fire()
    eventually(sandbox.sessions)
    with connect(sandbox.socket) as client:
        client.set("kept", "yes")
    sandbox.run("down")
    assert paths_below(sandbox.run_folder) == set()
    assert not list(sandbox.home.rglob("*.lock"))
    assert sandbox.processes() == {}
    assert [path.name for path in sandbox.home.glob("hive.db*")] == ["hive.db"]
    assert sandbox.status(expect=1)["state"] == "down"
    sandbox.run("down")  # a second down is no error
    sandbox.run("up", "-d")
    assert sandbox.status()["state"] == "on"
    with connect(sandbox.socket) as client:
        assert client.get("kept") == b"yes"


def test_restart_starts_new_processes_and_keeps_the_state_on(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.run("up", "-d")
    before = sandbox.pids()
    output = sandbox.run("restart", HIVEPIPE_SUMMARIES="on")
    assert "HIVEPIPE_SUMMARIES is set in this shell, which no stack sees" in output
    assert sandbox.counts() == ONE_OF_EACH
    assert not set(before.values()) & set(sandbox.pids().values())
    assert state_of(sandbox, monkeypatch) == "on"
    sandbox.run("down")
    sandbox.run("restart")  # a stack that is down is started
    assert sandbox.counts() == ONE_OF_EACH
    assert state_of(sandbox, monkeypatch) == "on"


def test_restart_does_not_wait_for_a_hanging_redis(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    sandbox.fire("s1")
    eventually(sandbox.sessions)
    os.kill(sandbox.pid("redis"), signal.SIGSTOP)
    sandbox.run("restart")
    eventually(lambda: sandbox.counts() == ONE_OF_EACH)  # a starting process has no name yet
    address = sandbox.run("url").strip()
    with redis.Redis.from_url(address, socket_timeout=1) as client, suppress(redis.TimeoutError):
        client.eval("while true do end", 0)
    sandbox.run("restart")
    eventually(lambda: sandbox.counts() == ONE_OF_EACH)
    log = (sandbox.home / "logs" / "supervisord.log").read_text()
    # the writer would have waited for Redis until it was killed
    assert "killing 'writer'" not in log
    assert "s1" in sandbox.run("sessions")


@pytest.mark.parametrize("seed", range(rounds(1)))
def test_record_and_processes_agree_after_parallel_commands(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    run_in_parallel(sandbox, [("up", "-d")] * 4)
    assert sandbox.counts() == ONE_OF_EACH
    words = [("up", "-d"), ("down",)] if seed % 2 else [("down",), ("up", "-d")]
    run_in_parallel(sandbox, words * 3)
    if state_of(sandbox, monkeypatch) == "on":
        assert sandbox.counts() == ONE_OF_EACH
        assert sandbox.status()["healthy"] is True
    else:
        assert sandbox.processes() == {}
        assert paths_below(sandbox.run_folder) == set()


def run_in_parallel(sandbox: Sandbox, commands: list[tuple[str, ...]]) -> None:
    with ThreadPoolExecutor(len(commands)) as pool:
        for done in [pool.submit(sandbox.run, *words) for words in commands]:
            done.result()


def test_processes_are_found_without_their_runtime_folder(sandbox: Sandbox) -> None:
    """A logout removes the folder, while the processes may continue."""
    sandbox.run("up", "-d")
    before = sandbox.pids()
    shutil.rmtree(sandbox.run_folder / "hivepipe")
    sandbox.run("up", "-d")
    assert sandbox.counts() == ONE_OF_EACH
    assert not set(before.values()) & set(sandbox.pids().values())


OLDER = """
from hivepipe.stack import processes
processes.version = lambda _name: "0.0.1"
from hivepipe.cli.main import main
main(["up", "-d"])
"""


def test_up_replaces_a_stack_of_another_version(sandbox: Sandbox) -> None:
    outcome_of([sys.executable, "-I", "-c", OLDER], sandbox.env, sandbox.project, check=True)
    older = sandbox.pids()
    sandbox.run("up", "-d")
    newer = sandbox.pids()
    assert not set(older.values()) & set(newer.values())
    sandbox.run("up", "-d")
    assert sandbox.pids() == newer, "a stack of the same version was replaced"


def test_stacks_lists_running_broken_stopped_and_deleted_ones(sandbox: Sandbox) -> None:
    assert listed_stacks(sandbox) == []
    sandbox.run("up", "-d")
    (entry,) = listed_stacks(sandbox)
    assert entry["home"] == str(sandbox.home)
    assert entry["project"] == str(sandbox.project)
    assert entry["state"] == "running"
    assert {*sandbox.pids().values()} <= set(entry["pids"])  # type: ignore[call-overload]
    pss = sum(psutil.Process(pid).memory_full_info().pss for pid in entry["pids"])  # type: ignore[attr-defined]
    assert entry["memory_bytes"] == pytest.approx(pss, rel=0.2)
    output = sandbox.run("stacks")
    assert str(sandbox.home) in output
    assert "running" in output

    os.kill(sandbox.pid("supervisord"), signal.SIGKILL)
    eventually(lambda: listed_stacks(sandbox)[0]["state"] == "broken")
    sandbox.run("down")
    assert listed_stacks(sandbox)[0]["state"] == "stopped"
    shutil.rmtree(sandbox.home)
    assert listed_stacks(sandbox)[0]["state"] == "gone"


@pytest.mark.parametrize("options", [[], ["--all"]], ids=["one", "all"])
def test_down_stops_a_stack_on_a_read_only_disk(sandbox: Sandbox, options: list[str]) -> None:
    """Else nobody could unmount or check the disk."""
    sandbox.run("up", "-d")
    runtime = sandbox.run("url").strip().removeprefix("unix://").rpartition("/")[0]
    with ExitStack() as stack:
        for folder in (sandbox.env["XDG_STATE_HOME"], runtime):
            stack.enter_context(mounted(Path(folder), "--bind", folder))
            eventually(partial(run, "mount", "-o", "remount,ro,bind", folder))
        assert "may start it" in sandbox.run("down", *options, expect=1)
        assert sandbox.processes() == {}
        assert "may start it" in sandbox.run("down", *options, expect=1)


def test_down_all_also_stops_the_stack_of_a_deleted_project(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    first = sandbox.project
    sandbox.project = sandbox.folder / "second"
    sandbox.project.mkdir()
    sandbox.run("up", "-d")
    assert sandbox.counts() == {kind: 2 for kind in EVERY}
    for record in (sandbox.folder / "state" / "hivepipe" / "projects").iterdir():
        if str(first) in record.read_text():
            record.unlink()
    shutil.rmtree(first)
    sandbox.run("down", "--all")
    assert sandbox.processes() == {}
    assert paths_below(sandbox.run_folder) == set()
    assert not first.exists()


def test_a_stack_that_starts_after_the_processes_were_read_is_stopped_too(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        posix, "environ", {os.fsencode(k): os.fsencode(v) for k, v in sandbox.env.items()}
    )
    table = ProcessTable()
    assert known_stacks(table) == []  # reads the processes
    sandbox.run("up", "-d")
    stack = Stack.of(locate(str(sandbox.project)))
    assert not table.of(stack)
    searches = []
    children = psutil.Process.children
    with monkeypatch.context() as counted:
        counted.setattr(
            psutil.Process, "children", lambda *a, **k: searches.append(1) or children(*a, **k)
        )
        (known,) = known_stacks(ProcessTable())
    assert (known.state, len(searches)) == ("running", 1)
    assert {each.pid for each in known.processes} >= {*sandbox.pids().values()}
    assert list(take_all_down([stack], table)) == [(stack, None)]
    assert sandbox.processes() == {}
    assert read_record(str(sandbox.project))["state"] == "down"


def test_stacks_of_another_set_of_records_are_separate(sandbox: Sandbox) -> None:
    """As in a container, in a test, or with another XDG_STATE_HOME of the same account."""
    other = Sandbox(Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp")))
    try:
        other.run("up", "-d")
        assert listed_stacks(sandbox) == []
        sandbox.run("down", "--all")
        assert other.counts() == ONE_OF_EACH
    finally:
        other.run("down", "--all")
        shutil.rmtree(other.folder)


def test_logs_of_a_stack_that_never_ran_are_empty(sandbox: Sandbox) -> None:
    assert sandbox.run("logs") == "no log lines\n"


def test_an_opted_out_project_stays_off(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.run("up", "-d")
    for record in (sandbox.folder / "state" / "hivepipe" / "projects").iterdir():
        record.write_text(record.read_text().replace("state=on", "state=off"))
    sandbox.run("down")
    assert state_of(sandbox, monkeypatch) == "off"
    for command in (["restart"], ["up", "-d"]):
        assert "switched off" in sandbox.run(*command, expect=1)
    assert sandbox.processes() == {}
    assert state_of(sandbox, monkeypatch) == "off"
