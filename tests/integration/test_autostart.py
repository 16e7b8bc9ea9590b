"""Hooks start the stack, once, and it shuts down when it is idle."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hivepipe.home import short_hash
from tests.conftest import NEUTRAL, hook_path
from tests.integration.test_stack import (  # noqa: F401  a fixture
    ONE_OF_EACH,
    Sandbox,
    eventually,
    sandbox,
)

REGISTER = """
import sys
from hivepipe.stack.lock import Stack
from hivepipe.stack.registration import register
project, home, folder, python = sys.argv[1:5]
register(project, Stack(home, folder), python)
"""


class Resting:
    """A registered project whose stack never ran; its python notes each start."""

    def __init__(self, sandbox: Sandbox) -> None:  # noqa: F811
        self.sandbox = sandbox
        self.starts_file = sandbox.folder / "starts"
        python = sandbox.folder / "python"
        python.write_text(
            f'#!/bin/sh\necho "$*" >> {self.starts_file}\nexec {sys.executable} "$@"\n'
        )
        python.chmod(0o755)
        self.python = str(python)
        self.register(sandbox.project, sandbox.home)

    def remembers(self, **variables: str) -> None:
        """Have an environment that `up` has noted."""
        kept = {name: self.sandbox.env[name] for name in ("PATH", "HOME", "XDG_STATE_HOME")}
        text = "".join(f"{name}={said}\n" for name, said in {**kept, **variables}.items())
        (self.sandbox.home / "environment").write_text(text)

    def register(self, project: Path, home: Path) -> None:
        runtime = self.sandbox.run_folder / "hivepipe" / short_hash(str(home))
        subprocess.run(
            [
                sys.executable,
                "-I",
                "-c",
                REGISTER,
                project,
                home,
                runtime,
                self.python,
            ],
            env=self.sandbox.env,
            check=True,
        )

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
def resting(sandbox: Sandbox) -> Resting:  # noqa: F811
    return Resting(sandbox)


def test_fifty_hooks_at_once_give_one_starter_one_stack_and_lose_nothing(resting: Resting) -> None:
    resting.fire_at_once(50)
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: len(resting.sandbox.sessions()) == 50)
    assert resting.starts == 1
    assert resting.sandbox.spooled == 0
    report = resting.sandbox.status()
    assert report["leaves_when_idle"] is True
    assert report["failed_start"] is None
    assert "started   by a hook" in resting.sandbox.run("status")

    supervisor = resting.sandbox.processes()["supervisord"][0]
    assert os.getsid(supervisor.pid) == supervisor.pid
    environ = supervisor.environ()
    assert "CLAUDE_PROJECT_DIR" not in environ
    assert environ["HIVEPIPE_HOME"] == str(resting.sandbox.home)


def test_without_automatic_start_fifty_events_wait_on_disk(resting: Resting) -> None:
    resting.fire_at_once(50, HIVEPIPE_AUTOSTART="0")
    assert resting.sandbox.spooled == 50
    assert not list(resting.sandbox.run_folder.rglob("*")), "nothing was even tried"


@pytest.mark.parametrize(
    ("env", "started"),
    [
        ({"CI": "true"}, False),
        ({"CLAUDE_CODE_REMOTE": "true"}, False),
        ({"CI": "false"}, True),
        ({"CI": "true", "HIVEPIPE_AUTOSTART": "1"}, True),
    ],
)
def test_ci_and_cloud_are_left_alone_unless_asked_for(
    resting: Resting, env: dict[str, str], started: bool
) -> None:
    Path(resting.python).write_text("#!/bin/sh\n")
    resting.sandbox.fire(**env)
    assert resting.sandbox.spooled == 1
    assert bool(list(resting.sandbox.run_folder.rglob("starting"))) is started


@pytest.mark.parametrize("state", ["down", "off"])
def test_a_stack_that_its_user_stopped_stays_down(resting: Resting, state: str) -> None:
    for record in (resting.sandbox.folder / "state" / "hivepipe" / "projects").iterdir():
        record.write_text(record.read_text().replace("state=on", f"state={state}"))
    resting.sandbox.fire()
    assert resting.sandbox.spooled == (1 if state == "down" else 0)
    assert not list(resting.sandbox.run_folder.rglob("*"))


def test_down_holds_for_every_project_of_the_home_and_off_for_one_alone(resting: Resting) -> None:
    first, other = resting.sandbox.project, resting.sandbox.folder / "other"
    other.mkdir()
    resting.register(other, resting.sandbox.home)
    resting.sandbox.run("down")
    resting.sandbox.project = other
    resting.sandbox.fire()
    assert resting.sandbox.spooled == 1
    assert not list(resting.sandbox.run_folder.rglob("*"))
    resting.sandbox.run("off")
    resting.sandbox.fire("s-2")
    assert resting.sandbox.spooled == 1
    assert "switched off" in resting.sandbox.run("restart", expect=1)
    resting.sandbox.project = first
    resting.sandbox.fire("s-3")
    assert resting.sandbox.spooled == 2, "the other project is not opted out"
    resting.sandbox.run("up", "-d")
    eventually(lambda: len(resting.sandbox.sessions()) == 2)
    resting.sandbox.project = other
    assert resting.sandbox.report()["state"] == "off"
    resting.sandbox.run("on")
    assert resting.sandbox.status()["state"] == "on"


def test_down_wins_over_a_starter_that_is_on_its_way(resting: Resting) -> None:
    slow = Path(resting.python)
    slow.write_text(slow.read_text().replace("exec", "sleep 1\nexec"))
    resting.sandbox.fire()
    resting.sandbox.run("down")
    eventually(lambda: resting.starts == 1)
    time.sleep(2)
    assert resting.sandbox.processes() == {}


def test_the_starter_holds_nothing_of_the_hooks(resting: Resting) -> None:
    """Claude Code waits for the pipes of its hooks, and a shell for those it has opened itself."""
    Path(resting.python).write_text(f"#!/bin/sh\necho >> {resting.starts_file}\nexec sleep 30\n")
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", hook_path("SessionStart")],
        env=resting.sandbox.env | {"CLAUDE_PROJECT_DIR": str(resting.sandbox.project)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(write_end,),
    )
    os.close(write_end)
    out, err = process.communicate(b'{"session_id": "s-1", "source": "startup"}', timeout=30)
    assert (out, err) == (NEUTRAL.encode(), b"")
    eventually(lambda: resting.starts == 1)
    assert select.select([read_end], [], [], 10)[0], "somebody still holds it"
    assert os.read(read_end, 1) == b""
    os.close(read_end)


def test_a_failed_start_is_explained_and_tried_again_later_and_later(resting: Resting) -> None:
    config = resting.sandbox.configure('redis_server = "/bin/true"\n')
    resting.sandbox.fire()
    eventually(lambda: resting.starting[1:2] == ["1"])
    not_before, _, reason = resting.starting
    assert "redis_server = /bin/true" in reason
    assert 50 < float(not_before) - time.time() <= 60
    resting.sandbox.fire()
    time.sleep(0.3)
    assert resting.starts == 1
    report = resting.sandbox.status(expect=1)
    assert report["failed_start"]["failures"] == 1  # type: ignore[index]
    assert "hooks could not start the stack" in resting.sandbox.run("status", expect=1)

    (file,) = resting.sandbox.run_folder.rglob("starting")
    file.write_text(f"{time.time() - 1:.3f} 1 {reason}")
    resting.sandbox.fire()
    eventually(lambda: resting.starting[1:2] == ["2"])
    assert 110 < float(resting.starting[0]) - time.time() <= 120

    file.write_text(f"{time.time() + 1e6:.3f} 7 another clock wrote this")
    config.unlink()
    resting.sandbox.fire()
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: resting.starting[1] == "0")


def test_an_unregistered_project_uses_the_stack_of_the_default_home(resting: Resting) -> None:
    default = resting.sandbox.folder / "state" / "hivepipe" / "default"
    resting.register(default, default)
    stranger = resting.sandbox.folder / "stranger"
    stranger.mkdir()
    resting.sandbox.project = stranger
    resting.sandbox.fire()
    eventually(lambda: (default / "hive.db").exists())
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)
    assert resting.sandbox.status()["home"] == str(default)
    assert list(stranger.iterdir()) == []
    assert "every unregistered project" in resting.sandbox.run("stacks")
    resting.sandbox.run("down")
    assert resting.sandbox.processes() == {}


def test_a_folder_nobody_registered_starts_nothing(resting: Resting) -> None:
    stranger = resting.sandbox.folder / "stranger"
    stranger.mkdir()
    resting.sandbox.project = stranger
    resting.sandbox.fire()
    default = resting.sandbox.folder / "state" / "hivepipe" / "default"
    assert len(list((default / "spool").glob("*.json"))) == 1
    assert not list(resting.sandbox.run_folder.rglob("*"))


def test_the_runtime_folder_of_a_login_that_is_over_is_replaced(resting: Resting) -> None:
    resting.sandbox.run("up", "-d")
    old = resting.sandbox.socket
    resting.sandbox.run_folder.rename(resting.sandbox.folder / "logged-out")
    resting.sandbox.run_folder.write_text("not a folder any more")
    resting.sandbox.fire()
    eventually(lambda: resting.sandbox.socket != old)
    assert resting.sandbox.socket.startswith(f"/tmp/hivepipe-{os.geteuid()}/")
    eventually(lambda: resting.sandbox.report()["healthy"])
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)  # the starter ends last
    resting.sandbox.run("down")
    assert not Path(resting.sandbox.socket).parent.exists()


# ---- a killed supervisor


def test_a_killed_supervisor_is_replaced_and_nothing_is_lost(resting: Resting) -> None:
    resting.sandbox.run("up", "-d")
    old = resting.sandbox.pid("supervisord")
    os.kill(old, signal.SIGKILL)
    resting.fire_at_once(50)
    eventually(lambda: "supervisord" in resting.sandbox.processes())
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: len(resting.sandbox.sessions()) == 50)
    assert resting.sandbox.status()["leaves_when_idle"] is False, "a person asked for it"


# ---- leaving


def end_session(resting: Resting, **env: str) -> None:
    resting.sandbox.fire(event="SessionEnd", **env)


def test_a_stack_that_a_hook_started_ends_when_it_is_idle(resting: Resting) -> None:
    resting.remembers(HIVEPIPE_IDLE_SECS="1")
    resting.sandbox.fire()
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: len(resting.sandbox.sessions()) == 1)
    time.sleep(2.5)
    assert resting.sandbox.counts() == ONE_OF_EACH, "a session is open, and its process lives"
    end_session(resting)
    eventually(lambda: resting.sandbox.processes() == {})
    assert "hook" not in resting.sandbox.run("logs", "writer", "-n", "0")
    assert "shutting the stack down" in (resting.sandbox.home / "logs" / "writer.log").read_text()
    (entry,) = json.loads(resting.sandbox.run("stacks", "--json"))["stacks"]
    assert entry["state"] == "resting"
    for file in resting.sandbox.run_folder.rglob("starting"):
        file.unlink()  # 10 s have not passed yet
    resting.sandbox.fire("s-2")
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)


def test_a_session_whose_process_died_keeps_no_stack_up(resting: Resting) -> None:
    code = (
        "import subprocess, sys;"
        'subprocess.run(sys.argv[1:], input=b\'{"session_id": "s-1", "source": "startup"}\')'
    )
    resting.remembers(HIVEPIPE_IDLE_SECS="1")
    hook = [sys.executable, "-I", "-S", str(hook_path("SessionStart"))]
    subprocess.run(
        [sys.executable, "-c", code, *hook],
        env=resting.sandbox.env | {"CLAUDE_PROJECT_DIR": str(resting.sandbox.project)},
        check=True,
        capture_output=True,
    )
    eventually(lambda: resting.sandbox.sessions())
    eventually(lambda: resting.sandbox.processes() == {})
    assert len(resting.sandbox.sessions()) == 1


def test_a_stack_that_a_person_asked_for_stays(resting: Resting) -> None:
    env = {"HIVEPIPE_IDLE_SECS": "1"}
    resting.sandbox.fire(**env)
    eventually(lambda: resting.sandbox.counts() == ONE_OF_EACH)
    resting.sandbox.run("up", "-d")
    assert resting.sandbox.status()["leaves_when_idle"] is False
    end_session(resting, **env)
    time.sleep(2.5)
    assert resting.sandbox.counts() == ONE_OF_EACH
