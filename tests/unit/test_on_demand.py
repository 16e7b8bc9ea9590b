"""The supervisor runs a program on demand while its file exists and its lock is free."""

import fcntl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from supervisor.states import ProcessStates, SupervisorStates

from hivepipe.stack.on_demand import switch
from hivepipe.stack.wanted import set_wanted

RUNNING, STOPPED = ProcessStates.RUNNING, ProcessStates.STOPPED


class Program:
    def __init__(self, state: int, pid: int, *, autostart: bool = False) -> None:
        self.state, self.pid, self.calls = state, pid, ""
        self.config = SimpleNamespace(autostart=autostart)

    def get_state(self) -> int:
        return self.state

    def spawn(self) -> None:
        self.calls += "spawn"

    def stop(self) -> None:
        self.calls += "stop"


def calls(folder: Path, state: int, pid: int, mood: int = SupervisorStates.RUNNING) -> str:
    """Return the supervisor's calls on the program `llm`. Check that it leaves others alone."""
    program, other = Program(state, pid), Program(STOPPED, 0, autostart=True)
    groups: dict[str, Any] = {
        "1": SimpleNamespace(processes={"redis": other}),
        "10": SimpleNamespace(processes={"llm": program}),
    }
    options = SimpleNamespace(mood=mood)
    switch(SimpleNamespace(options=options, process_groups=groups), str(folder))
    assert other.calls == ""
    return program.calls


def test_a_wanted_program_is_started_and_another_stopped(tmp_path: Path) -> None:
    for _ in range(2):
        set_wanted(str(tmp_path), "llm", True)
        set_wanted(str(tmp_path), "redis", True)
        assert calls(tmp_path, STOPPED, 0) == "spawn"
        assert calls(tmp_path, RUNNING, 7) == ""
        assert calls(tmp_path, STOPPED, 0, SupervisorStates.SHUTDOWN) == ""
    for _ in range(2):
        set_wanted(str(tmp_path), "llm", False)
        assert calls(tmp_path, STOPPED, 0) == ""
        assert calls(tmp_path, RUNNING, 7) == "stop"
        assert calls(tmp_path, ProcessStates.STOPPING, 7) == ""


def test_a_program_is_started_only_while_its_lock_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "user.lock"
    set_wanted(str(tmp_path), "llm", True, str(lock))
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert calls(tmp_path, STOPPED, 0) == ""
        assert calls(tmp_path, RUNNING, 7) == "", "it holds the lock itself"
    assert calls(tmp_path, STOPPED, 0) == "spawn"


def test_a_lock_that_cannot_be_created_raises_nothing(tmp_path: Path) -> None:
    set_wanted(str(tmp_path), "llm", True, str(tmp_path / "gone" / "user.lock"))
    assert calls(tmp_path, STOPPED, 0) == ""


def test_a_file_that_is_removed_meanwhile_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.exists", lambda _path: True)
    assert calls(tmp_path, STOPPED, 0) == ""
