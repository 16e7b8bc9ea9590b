"""Hooks start the stack once, and it shuts down when it is idle."""

import json
import os
import posix
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hivepipe.home import short_hash
from hivepipe.stack.registration import register
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import users_processes, value_or
from tests.conftest import NEUTRAL, hook_path
from tests.outcome import outcome_of
from tests.sandbox import ONE_OF_EACH, Sandbox, eventually


class UnstartedStack:
    """A registered project whose stack never ran; its Python interpreter records each start."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.starts_file = sandbox.folder / "starts"
        python = sandbox.folder / "python"
        python.write_text(
            f'#!/bin/sh\necho "$*" >> {self.starts_file}\nexec {sys.executable} "$@"\n'
        )
        python.chmod(0o755)
        self.python = str(python)
        self.register(sandbox.project, sandbox.home)

    def store_environment(self, **variables: str) -> None:
        """Write the environment that `up` would store."""
        kept = {name: self.sandbox.env[name] for name in ("PATH", "HOME", "XDG_STATE_HOME")}
        text = "".join(f"{name}={value}\n" for name, value in {**kept, **variables}.items())
        (self.sandbox.home / "environment").write_text(text)

    def register(self, project: Path, home: Path) -> None:
        runtime = self.sandbox.run_folder / "hivepipe" / short_hash(str(home))
        seen = {os.fsencode(name): os.fsencode(value) for name, value in self.sandbox.env.items()}
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(posix, "environ", seen)
            register(str(project), Stack(str(home), str(runtime)), self.python)

    @property
    def starts(self) -> int:
        return len(self.starts_file.read_text().splitlines()) if self.starts_file.exists() else 0

    @property
    def starting(self) -> list[str]:
        (file,) = self.sandbox.run_folder.rglob("starting")
        return file.read_text().split(maxsplit=2)

    def fire_at_once(self, count: int, **env: str) -> None:
        with ThreadPoolExecutor(count) as pool:
            for fired in [pool.submit(self.sandbox.fire, f"s-{n}", **env) for n in range(count)]:
                fired.result()


@pytest.fixture
def unstarted(sandbox: Sandbox) -> UnstartedStack:
    return UnstartedStack(sandbox)


def test_fifty_hooks_at_once_give_one_starter_one_stack_and_lose_nothing(
    unstarted: UnstartedStack,
) -> None:
    unstarted.fire_at_once(50)
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: len(unstarted.sandbox.sessions()) == 50)
    assert unstarted.starts == 1
    assert unstarted.sandbox.spooled == 0
    report = unstarted.sandbox.status()
    assert report["leaves_when_idle"] is True
    assert report["failed_start"] is None
    assert "started   by a hook" in unstarted.sandbox.run("status")

    supervisor = unstarted.sandbox.processes()["supervisord"][0]
    assert os.getsid(supervisor.pid) == supervisor.pid
    environ = supervisor.environ()
    assert "CLAUDE_PROJECT_DIR" not in environ
    assert environ["HIVEPIPE_HOME"] == str(unstarted.sandbox.home)


def test_without_automatic_start_events_wait_on_disk(unstarted: UnstartedStack) -> None:
    unstarted.fire_at_once(5, HIVEPIPE_AUTOSTART="0")
    assert unstarted.sandbox.spooled == 5
    assert not list(unstarted.sandbox.run_folder.rglob("*")), "no start was tried"


def test_no_automatic_start_in_ci_and_cloud_unless_it_is_set(unstarted: UnstartedStack) -> None:
    Path(unstarted.python).write_text("#!/bin/sh\n")
    cases: list[tuple[dict[str, str], bool]] = [
        ({"CI": "true"}, False),
        ({"CLAUDE_CODE_REMOTE": "true"}, False),
        ({"CI": "false"}, True),
        ({"CI": "true", "HIVEPIPE_AUTOSTART": "1"}, True),
    ]
    for number, (env, is_started) in enumerate(cases, 1):
        unstarted.sandbox.fire(f"s-{number}", **env)
        assert unstarted.sandbox.spooled == number
        starting = list(unstarted.sandbox.run_folder.rglob("starting"))
        assert bool(starting) is is_started, env
        for file in starting:
            file.unlink()


@pytest.mark.parametrize("state", ["down", "off"])
def test_a_stack_that_its_user_stopped_stays_down(unstarted: UnstartedStack, state: str) -> None:
    for record in (unstarted.sandbox.folder / "state" / "hivepipe" / "projects").iterdir():
        record.write_text(record.read_text().replace("state=on", f"state={state}"))
    unstarted.sandbox.fire()
    assert unstarted.sandbox.spooled == (1 if state == "down" else 0)
    assert not list(unstarted.sandbox.run_folder.rglob("*"))


def test_down_applies_to_every_project_of_the_home_and_off_to_one(
    unstarted: UnstartedStack,
) -> None:
    first, other = unstarted.sandbox.project, unstarted.sandbox.folder / "other"
    other.mkdir()
    unstarted.register(other, unstarted.sandbox.home)
    unstarted.sandbox.run("down")
    unstarted.sandbox.project = other
    unstarted.sandbox.fire()
    assert unstarted.sandbox.spooled == 1
    assert not list(unstarted.sandbox.run_folder.rglob("*"))
    unstarted.sandbox.run("off")
    unstarted.sandbox.fire("s-2")
    assert unstarted.sandbox.spooled == 1
    assert "switched off" in unstarted.sandbox.run("restart", expect=1)
    unstarted.sandbox.project = first
    unstarted.sandbox.fire("s-3")
    assert unstarted.sandbox.spooled == 2, "the other project is not opted out"
    unstarted.sandbox.run("up", "-d")
    eventually(lambda: len(unstarted.sandbox.sessions()) == 2)
    unstarted.sandbox.project = other
    assert unstarted.sandbox.report()["state"] == "off"
    unstarted.sandbox.run("on")
    assert unstarted.sandbox.status()["state"] == "on"


@pytest.mark.parametrize(
    "words", [("down",), ("uninstall", "--purge", "--yes")], ids=lambda words: words[0]
)
def test_a_starter_that_is_running_is_stopped(
    unstarted: UnstartedStack, words: tuple[str, ...]
) -> None:
    slow = Path(unstarted.python)
    slow.write_text(slow.read_text().replace("exec", "sleep 2\nexec"))
    unstarted.sandbox.fire()
    eventually(lambda: unstarted.starts == 1)
    unstarted.sandbox.run(*words)
    eventually(lambda: not starters(unstarted))
    assert unstarted.sandbox.processes() == {}
    assert not list(unstarted.sandbox.run_folder.rglob("*"))
    assert unstarted.sandbox.home.exists() is (words == ("down",))


def starters(unstarted: UnstartedStack) -> list[str]:
    """Return the command lines of the starters that are running."""
    lines = [" ".join(value_or(process.cmdline, [])) for process in users_processes()]
    here = str(unstarted.sandbox.run_folder)
    return [line for line in lines if "stack.starter" in line and here in line]


def test_the_starter_inherits_no_file_descriptor(unstarted: UnstartedStack) -> None:
    """Claude Code, and a shell that runs a hook in a pipe, would wait until the starter ends."""
    Path(unstarted.python).write_text(
        f"#!/bin/sh\necho >> {unstarted.starts_file}\nexec sleep 30\n"
    )
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", hook_path("SessionStart")],
        env=unstarted.sandbox.env | {"CLAUDE_PROJECT_DIR": str(unstarted.sandbox.project)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(write_end,),
    )
    os.close(write_end)
    out, err = process.communicate(b'{"session_id": "s-1", "source": "startup"}', timeout=30)
    assert (out, err) == (NEUTRAL.encode(), b"")
    eventually(lambda: unstarted.starts == 1)
    assert select.select([read_end], [], [], 10)[0], "a process still holds it"
    assert os.read(read_end, 1) == b""
    os.close(read_end)


def test_a_failed_start_is_explained_and_retried_with_growing_delays(
    unstarted: UnstartedStack,
) -> None:
    config = unstarted.sandbox.configure('redis_server = "/bin/true"\n')
    unstarted.sandbox.fire()
    eventually(lambda: unstarted.starting[1:2] == ["1"])
    not_before, _, reason = unstarted.starting
    assert "redis_server = /bin/true" in reason
    assert 50 < float(not_before) - time.time() <= 60
    unstarted.sandbox.fire()
    time.sleep(0.3)
    assert unstarted.starts == 1
    report = unstarted.sandbox.status(expect=1)
    assert report["failed_start"]["failures"] == 1  # type: ignore[index]
    assert report["condition"] == "broken"
    output = unstarted.sandbox.run("status", expect=1)
    assert "hooks could not start the stack, 1 time:" in output
    assert output.splitlines()[-1].startswith("broken: ")
    assert "hivepipe doctor" in output

    (file,) = unstarted.sandbox.run_folder.rglob("starting")
    file.write_text(f"{time.time() - 1:.3f} 1 {reason}")
    unstarted.sandbox.fire()
    eventually(lambda: unstarted.starting[1:2] == ["2"])
    assert 110 < float(unstarted.starting[0]) - time.time() <= 120

    file.write_text(f"{time.time() + 1e6:.3f} 7 another clock wrote this")
    config.unlink()
    unstarted.sandbox.fire()
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: unstarted.starting[1] == "0")


def test_an_unregistered_project_uses_the_stack_of_the_default_home_if_it_is_registered(
    unstarted: UnstartedStack,
) -> None:
    default = unstarted.sandbox.folder / "state" / "hivepipe" / "default"
    unregistered = unstarted.sandbox.folder / "unregistered"
    unregistered.mkdir()
    unstarted.sandbox.project = unregistered
    unstarted.sandbox.fire()
    assert len(list((default / "spool").glob("*.json"))) == 1
    assert not list(unstarted.sandbox.run_folder.rglob("*"))

    unstarted.register(default, default)
    unstarted.sandbox.fire()
    eventually(lambda: (default / "hive.db").exists())
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)
    assert unstarted.sandbox.status()["home"] == str(default)
    assert list(unregistered.iterdir()) == []
    assert "every unregistered project" in unstarted.sandbox.run("stacks")
    unstarted.sandbox.run("down")
    assert unstarted.sandbox.processes() == {}


def test_the_runtime_folder_of_an_ended_login_is_replaced(unstarted: UnstartedStack) -> None:
    unstarted.sandbox.run("up", "-d")
    old = unstarted.sandbox.socket
    unstarted.sandbox.run_folder.rename(unstarted.sandbox.folder / "logged-out")
    unstarted.sandbox.run_folder.write_text("not a folder any more")
    unstarted.sandbox.fire()
    eventually(lambda: unstarted.sandbox.socket != old)
    assert unstarted.sandbox.socket.startswith(f"/tmp/hivepipe-{os.geteuid()}/")
    eventually(lambda: unstarted.sandbox.report()["healthy"])
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)  # the starter process ends last
    unstarted.sandbox.run("down")
    assert not Path(unstarted.sandbox.socket).parent.exists()


# ---- leaving
def test_a_stack_that_a_hook_started_ends_when_it_is_idle(unstarted: UnstartedStack) -> None:
    unstarted.store_environment(HIVEPIPE_IDLE_SECS="1")
    unstarted.sandbox.fire()
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: len(unstarted.sandbox.sessions()) == 1)
    time.sleep(2.5)
    assert unstarted.sandbox.counts() == ONE_OF_EACH, "a session is open, and its process runs"
    unstarted.sandbox.fire(event="SessionEnd")
    eventually(lambda: unstarted.sandbox.processes() == {})
    assert "hook" not in unstarted.sandbox.run("logs", "writer", "-n", "0")
    assert "shutting the stack down" in (unstarted.sandbox.home / "logs" / "writer.log").read_text()
    (entry,) = json.loads(unstarted.sandbox.run("stacks", "--json"))["stacks"]
    assert entry["state"] == "resting"
    for file in unstarted.sandbox.run_folder.rglob("starting"):
        file.unlink()  # 10 s have not passed since the last start
    unstarted.sandbox.fire("s-2")
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)


def test_a_session_whose_process_died_does_not_keep_the_stack_running(
    unstarted: UnstartedStack,
) -> None:
    code = (
        "import subprocess, sys;"
        'subprocess.run(sys.argv[1:], input=b\'{"session_id": "s-1", "source": "startup"}\')'
    )
    unstarted.store_environment(HIVEPIPE_IDLE_SECS="1")
    hook = [sys.executable, "-I", "-S", str(hook_path("SessionStart"))]
    outcome_of(
        [sys.executable, "-c", code, *hook],
        unstarted.sandbox.env | {"CLAUDE_PROJECT_DIR": str(unstarted.sandbox.project)},
        check=True,
    )
    eventually(lambda: unstarted.sandbox.sessions())
    eventually(lambda: unstarted.sandbox.processes() == {})
    assert len(unstarted.sandbox.sessions()) == 1


def test_a_stack_that_the_user_started_keeps_running(unstarted: UnstartedStack) -> None:
    env = {"HIVEPIPE_IDLE_SECS": "1"}
    unstarted.sandbox.fire(**env)
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)
    unstarted.sandbox.run("up", "-d")
    assert unstarted.sandbox.status()["leaves_when_idle"] is False
    unstarted.sandbox.fire(event="SessionEnd", **env)
    time.sleep(2.5)
    assert unstarted.sandbox.counts() == ONE_OF_EACH
