"""What is said of a supervisor that hangs, is suspended or has ended."""

import errno
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from types import SimpleNamespace
from typing import Any
from xmlrpc.client import Error as RpcError

import psutil
import pytest

from hivepipe.stack import supervisor
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.supervisor import _last_words, why_silent
from tests.conftest import until


@contextmanager
def answering(folder: Path, answer: Callable[[socket.socket], None]) -> Iterator[Any]:
    """Yield a stack whose supervisor's socket takes one call, which `answer` handles."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s.sock"))
        listening.listen()

        def accept() -> None:
            near, _ = listening.accept()
            with near:
                answer(near)

        server = Thread(target=accept)
        server.start()
        yield SimpleNamespace(supervisor_socket=str(folder / "s.sock"))
        server.join(10)


def test_a_supervisor_that_hangs_holds_up_no_other_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "ANSWER_SECS", 0.3)
    seen: list[object] = []

    def hang(near: socket.socket) -> None:
        near.recv(1)
        seen.append(socket.getdefaulttimeout())
        while near.recv(65536):  # until the caller has gone
            pass

    with answering(tmp_path, hang) as stack, pytest.raises(TimeoutError):
        supervisor._call(stack, "getState")
    assert seen == [None]


def test_a_redis_that_hangs_after_its_answer_holds_up_no_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "ANSWER_SECS", 0.3)
    monkeypatch.setattr(supervisor, "redis_trouble", lambda _stack: "")
    stack = Stack(str(tmp_path), str(tmp_path))
    seen: list[str] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(stack.socket)
        listening.listen()
        caller = Thread(target=lambda: seen.append(supervisor.why_not_ready(stack)), daemon=True)
        caller.start()
        caller.join(20)
    assert "no heartbeat" in str(seen)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "<params></params>",
        "<params><param><value><int>one</int></value></param></params>",
        "<params><param><value><boolean>2</boolean></value></param></params>",
        "<params><param><value><double>one</double></value></param></params>",
        "<fault><value><int>1</int></value></fault>",
        "<fault><value><struct></struct></value></fault>",
        "<params><param><value><other>1</other></value></param></params>",
        "<params><param>",
    ],
)
def test_a_damaged_answer_is_one_kind_of_error(tmp_path: Path, value: str) -> None:
    text = f"<?xml version='1.0'?><methodResponse>{value}</methodResponse>"

    def reply(near: socket.socket) -> None:
        while b"</methodCall>" not in near.recv(65536):
            pass
        near.sendall(f"HTTP/1.0 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

    with answering(tmp_path, reply) as stack, pytest.raises(RpcError):
        supervisor._call(stack, "getState")


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


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -KILL $$", "it was killed, as the kernel does when memory is short"),
        ("echo 'Error: no room' >&2; exit 2", "no room"),
        ("exit 1", "see `hivepipe logs supervisord`"),
    ],
)
def test_up_says_how_a_supervisor_ended(script: str, words: str) -> None:
    with TemporaryFile() as errors:
        process = subprocess.Popen(["sh", "-c", script], stderr=errors)
        process.wait(10)
        assert _last_words(process, errors) == words
