"""`hivepipe demo` as a user runs it: its output, its failure, and what it leaves behind."""

import fcntl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from hivepipe.cli.demo import command, scene
from hivepipe.cli.demo.scene import Scene
from hivepipe.cli.main import main
from hivepipe.errors import StackError
from tests.conftest import CLI, COMMANDS, Home, find_server
from tests.rounds import ASKED_ROUNDS

ACTS = (
    "a project in a temporary folder", "morning: Ann, Ben and Cleo work in one session",
    "another process holds the database locked for 2 s",
    "the swarm is deleted; Ann starts another agent", "kill -9: redis, while all three work",
    "kill -9: writer, while all three work", "kill -9: everything, the supervisor first",
    "evening: all three processes end", "rows in hive.db", "the accounts of all jobs",
    "latency of the hooks",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    find_server()
    # Each test checks that no demo is left.
    with open("/tmp/hivepipe-test-demo.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = set(Path("/tmp").glob("hpdemo*"))
        yield
        assert set(Path("/tmp").glob("hpdemo*")) == before
        assert [line for line in command_lines() if "hpdemo" in line] == []


def command_lines() -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def forked_status(words: list[str], **how: Any) -> "subprocess.CompletedProcess[str]":
    """Do what `subprocess.run` does, for `hivepipe status` in a fork."""
    if words[:-2] != CLI or words[-2] != "status":
        return subprocess.run(words, **how)
    return COMMANDS.run(words[len(CLI) :], "", how["env"], Path(how["cwd"]), how["timeout"])


@pytest.mark.long
def test_the_demo_shows_everything_as_expected(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = SimpleNamespace(**{**vars(subprocess), "run": forked_status})
    monkeypatch.setattr(scene, "subprocess", programs)
    done = CliRunner().invoke(command.demo, **main.context_settings)
    assert done.exit_code == 0, done.stdout[-3000:] + done.stderr
    places = [done.stdout.find(act) for act in ACTS]
    assert -1 not in places
    assert places == sorted(places)
    assert done.stdout.count("as expected") == 6
    assert "NOT as expected" not in done.stdout
    assert "12 events wait on disk" in done.stdout
    assert "missing swarm: swarm-" in done.stdout
    assert "every table has the expected rows, every job is accounted for" in done.stdout


@pytest.mark.skipif(not ASKED_ROUNDS, reason="a second demo; with HIVEPIPE_TEST_ROUNDS")
def test_the_demo_fails_when_a_hook_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that answers without recording its event makes the demo fail."""
    real = Scene._run

    def idle(scene: Scene, kind: str, command: list[str], text: str, env: dict[str, str]) -> None:
        if kind == "user_prompt_submit":
            command = ["true"]
        real(scene, kind, command, text, env)

    monkeypatch.setattr(Scene, "_run", idle)
    done = CliRunner().invoke(command.demo, **main.context_settings)
    assert isinstance(done.exception, StackError)
    assert str(done.exception) == "not as expected: prompts"
