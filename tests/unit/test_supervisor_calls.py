"""A call of a supervisor that hangs ends, and changes no socket of another thread."""

import socket
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from hivepipe.stack import supervisor


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
