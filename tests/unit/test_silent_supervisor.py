"""Suspended programs, and why a supervisor that runs does not answer."""

import errno
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hivepipe.stack import supervisor
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.supervisor import why_silent
from tests.conftest import until


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command) as started:
        yield psutil.Process(started.pid)
        started.kill()


def test_a_suspended_supervisor_is_named(process: psutil.Process, tmp_path: Path) -> None:
    process.send_signal(signal.SIGSTOP)
    until(lambda: process.status() == psutil.STATUS_STOPPED, "it is not suspended")
    stack = Stack(str(tmp_path), str(tmp_path))
    assert why_silent(stack, [process]) == (
        f"the supervisor (pid {process.pid}) is suspended: it restarts no program"
    )


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_stack_stops_on_a_full_disk_or_quota(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(code, "no room for a lock")

    monkeypatch.setattr(supervisor, "locked_file", full)
    supervisor.stop(Stack(str(tmp_path), str(tmp_path)))


def test_a_suspended_program_is_not_running(
    process: psutil.Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"name": "writer", "statename": "RUNNING", "pid": process.pid}
    monkeypatch.setattr(supervisor, "_answer", lambda *_: [dict(known)])
    stack = Stack(str(tmp_path), str(tmp_path))
    assert supervisor.processes(stack) == [known]
    process.send_signal(signal.SIGSTOP)
    until(lambda: process.status() == psutil.STATUS_STOPPED, "it is not suspended")
    assert supervisor.processes(stack) == [known | {"statename": "SUSPENDED"}]
    process.kill()
    process.wait()
    assert supervisor.processes(stack) == [known]


def test_a_supervisor_that_hangs_does_not_lack_its_socket(
    process: psutil.Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "ANSWER_SECS", 0.1)
    stack = Stack(str(tmp_path), str(tmp_path))
    assert "its socket is missing" in why_silent(stack, [process])
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(stack.supervisor_socket)
        listening.listen()
        assert why_silent(stack, [process]) == (
            "the supervisor accepts connections and does not answer"
        )


def test_a_supervisor_that_ends_is_not_silent(process: psutil.Process, tmp_path: Path) -> None:
    process.kill()
    assert why_silent(Stack(str(tmp_path), str(tmp_path)), [process]) == ""
