"""The user's command and webhook: whatever they do, it ends, and no secret of theirs is told."""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hivepipe.alerts import notify
from tests.conftest import until

SAID = {"alert": "disk", "state": "raised"}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "LIMIT_SECS", 2)


def _lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")
@pytest.mark.parametrize(
    ("then", "outcome"), [("wait", "not done within"), ("exit 0", ""), ("exit 3", "exit code 3")]
)
def test_whatever_a_command_started_is_over_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, outcome: str
) -> None:
    monkeypatch.setattr(notify, "LIMIT_SECS", 1 if then == "wait" else 10)
    pid_file = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {pid_file}; : sk-ant-secret; {then}"
    said = notify.run(f"sh -c '{script}'", SAID)
    assert said.startswith(outcome)
    assert bool(said) == bool(outcome)
    assert "secret" not in said
    until(lambda: not _lives(int(pid_file.read_text())), "its child lives on")


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("/no/such/program --token hunter2secret", "the command cannot be run: No such file"),
        ("echo 'hunter2secret", "the command cannot be read: No closing quotation"),
        (" ", "the command is empty"),
        ("sh -c 'echo password=hunter2secret >&2; exit 4'", "exit code 4: password=***REDACTED***"),
        ("true", ""),
    ],
)
def test_what_goes_wrong_with_a_command_is_said_without_its_secrets(
    command: str, outcome: str
) -> None:
    said = notify.run(command, SAID)
    assert said.startswith(outcome)
    assert bool(said) == bool(outcome)
    assert "hunter2secret" not in said


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_command_that_talks_without_end_is_ended(stream: str) -> None:
    endless = f"import sys\nwhile True: sys.{stream}.write('word ' * 1000)"
    said = notify.run(f'{sys.executable} -c "{endless}"', SAID)
    assert said == "not done within 2 s"


def _garbage(peer: socket.socket) -> None:
    peer.sendall(b"hello\r\n\r\n")


def _elsewhere(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 302 F\r\nLocation: http://127.0.0.1:1/hunter2secret\r\n\r\n")


def _drip(peer: socket.socket) -> None:
    """Never long enough silent for a socket's own timeout."""
    peer.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(50):
        time.sleep(0.2)
        peer.sendall(b"X-%d: a\r\n" % number)


@pytest.fixture
def webhook() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """A server that answers one request in its own way."""
    listening = socket.create_server(("127.0.0.1", 0))
    threads = []

    def serve(answer: Callable[[socket.socket], None]) -> str:
        def once() -> None:
            peer, _ = listening.accept()
            with peer, suppress(OSError):
                peer.recv(65536)
                answer(peer)

        threads.append(threading.Thread(target=once))
        threads[-1].start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}/hunter2secret"

    yield serve
    for thread in threads:
        thread.join()
    listening.close()


@pytest.mark.parametrize(
    ("answer", "outcome"), [(_garbage, "BadStatusLine"), (_elsewhere, "HTTP 302")]
)
def test_an_invalid_answer_of_a_server_is_a_reason_and_no_failed_job(
    webhook: Callable[[Callable[[socket.socket], None]], str],
    answer: Callable[[socket.socket], None],
    outcome: str,
) -> None:
    assert notify.post(webhook(answer), SAID) == outcome


@pytest.mark.usefixtures("soon")
def test_a_server_that_never_comes_to_an_end_is_left(
    webhook: Callable[[Callable[[socket.socket], None]], str],
) -> None:
    assert notify.post(webhook(_drip), SAID) == "not done within 2 s"


@pytest.mark.parametrize(
    "address",
    ["http://a b/hunter2secret", "http://h:abc/hunter2secret", "ftp://hunter2secret", "http://[x/"],
)
def test_an_address_that_is_none_is_said_without_it(address: str) -> None:
    said = notify.post(address, SAID)
    assert said
    assert "not done" not in said
    assert "hunter2secret" not in said
