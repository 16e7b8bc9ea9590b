"""Which worker serves the queue `llm`, and when the supervisor starts the llm worker."""

import os
from pathlib import Path

import pytest

from hivepipe.stack.lock import acquire_lock
from hivepipe.worker import llm_queue
from hivepipe.worker.llm_queue import LlmQueue


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(llm_queue, "runtime_for", lambda _home: str(tmp_path))
    return tmp_path


def test_the_queue_changes_workers_and_never_has_two(folder: Path) -> None:
    slow, llm = LlmQueue("home"), LlmQueue("home")
    assert slow.acquire_or_release(False)
    role = acquire_lock(f"{folder}/llm.lock", 0)  # an llm worker starts
    assert not llm.acquire(), "the slow worker may be executing a job"
    assert not slow.acquire_or_release(True)
    assert llm.acquire()
    assert not slow.acquire_or_release(True)
    llm._release()  # the llm worker ends
    os.close(role)
    assert slow.acquire_or_release(False)


def test_a_wanted_llm_worker_has_time_to_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = LlmQueue("home")
    assert not slow.acquire_or_release(True)
    monkeypatch.setattr(llm_queue, "ABSENT_SECS", 0.0)
    assert slow.acquire_or_release(True), "no job waits for ever"


def test_the_queue_is_kept_until_the_llm_worker_starts(folder: Path) -> None:
    slow = LlmQueue("home")
    assert slow.acquire_or_release(False)
    assert slow.acquire_or_release(True)
