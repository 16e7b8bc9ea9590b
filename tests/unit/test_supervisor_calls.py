"""A call of a supervisor that hangs or answers nonsense ends with an error."""

import socket
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from xmlrpc.client import Error as RpcError

import pytest

from hivepipe.stack import supervisor
from hivepipe.stack.runtime_folder import Stack


def test_a_supervisor_that_hangs_holds_up_no_other_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "ANSWER_SECS", 0.3)
    path = str(tmp_path / "s.sock")
    seen: list[object] = []

    def accept() -> None:
        near, _ = listening.accept()
        with near:
            near.recv(1)
            seen.append(socket.getdefaulttimeout())
            while near.recv(65536):  # until the caller has gone
                pass

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        server = Thread(target=accept)
        server.start()
        stack: Any = SimpleNamespace(supervisor_socket=path)
        with pytest.raises(TimeoutError):
            supervisor._call(stack, "getState")
        server.join(10)
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
    path = str(tmp_path / "s.sock")

    def reply() -> None:
        near, _ = listening.accept()
        with near:
            while b"</methodCall>" not in near.recv(65536):
                pass
            near.sendall(f"HTTP/1.0 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        server = Thread(target=reply)
        server.start()
        stack: Any = SimpleNamespace(supervisor_socket=path)
        with pytest.raises(RpcError):
            supervisor._call(stack, "getState")
        server.join(10)
