"""Who serves the queue `llm`, and when the supervisor runs its worker."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from supervisor.states import ProcessStates, SupervisorStates

from hivepipe.queue.names import LLM_WANTED
from hivepipe.stack import llm_switch
from hivepipe.stack.lock import take_lock
from hivepipe.worker import llm_queue
from hivepipe.worker.llm_queue import LlmQueue


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(llm_queue, "runtime_for", lambda _home: str(tmp_path))
    return tmp_path


def test_the_queue_changes_hands_and_never_has_two_workers(folder: Path) -> None:
    slow, llm = LlmQueue("home"), LlmQueue("home")
    assert slow.acquire_or_release(False)
    role = take_lock(f"{folder}/llm.lock", 0)  # an llm worker starts
    assert not llm.acquire(), "the slow worker may be executing a job"
    assert not slow.acquire_or_release(True)
    assert llm.acquire()
    assert not slow.acquire_or_release(True)
    llm._release()  # it ends
    os.close(role)
    assert slow.acquire_or_release(False)


def test_an_llm_worker_that_is_wanted_has_time_to_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = LlmQueue("home")
    assert not slow.acquire_or_release(True)
    monkeypatch.setattr(llm_queue, "ABSENT_SECS", 0.0)
    assert slow.acquire_or_release(True), "no job waits for ever"


def test_the_queue_is_kept_until_the_llm_worker_is_there(folder: Path) -> None:
    slow = LlmQueue("home")
    assert slow.acquire_or_release(False)
    assert slow.acquire_or_release(True)


def test_the_supervisor_is_told_by_a_file(folder: Path) -> None:
    slow = LlmQueue("home")
    for is_wanted in (True, True, False, False):
        slow.want(is_wanted)
        assert (folder / LLM_WANTED).exists() is is_wanted


class Program:
    def __init__(self, state: int, pid: int) -> None:
        self.state, self.pid, self.calls = state, pid, ""

    def get_state(self) -> int:
        return self.state

    def spawn(self) -> None:
        self.calls += "spawn"

    def stop(self) -> None:
        self.calls += "stop"


@pytest.mark.parametrize(
    ("mood", "state", "pid", "is_wanted", "calls"),
    [
        (SupervisorStates.RUNNING, ProcessStates.STOPPED, 0, True, "spawn"),
        (SupervisorStates.RUNNING, ProcessStates.STOPPED, 0, False, ""),
        (SupervisorStates.RUNNING, ProcessStates.RUNNING, 7, True, ""),
        (SupervisorStates.RUNNING, ProcessStates.RUNNING, 7, False, "stop"),
        (SupervisorStates.RUNNING, ProcessStates.STOPPING, 7, False, ""),
        (SupervisorStates.SHUTDOWN, ProcessStates.STOPPED, 0, True, ""),
    ],
)
def test_the_supervisor_starts_and_stops_it(
    mood: int, state: int, pid: int, is_wanted: bool, calls: str
) -> None:
    program = Program(state, pid)
    groups: dict[str, Any] = {
        "1": SimpleNamespace(processes={"redis": Program(ProcessStates.RUNNING, 5)}),
        "10": SimpleNamespace(processes={"llm": program}),
    }
    options = SimpleNamespace(mood=mood)
    llm_switch.switch(SimpleNamespace(options=options, process_groups=groups), is_wanted)
    assert program.calls == calls
