"""The user's alert command and webhook: each has a time limit, and no secret of theirs is shown."""

import json
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

ALERT = {"alert": "disk", "state": "raised"}


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "LIMIT_SECS", 1)


def _is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")
@pytest.mark.parametrize(
    ("then", "outcome"), [("wait", "not done within"), ("exit 0", ""), ("exit 3", "exit code 3")]
)
def test_the_children_of_a_command_end_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, outcome: str
) -> None:
    monkeypatch.setattr(notify, "LIMIT_SECS", 1 if then == "wait" else 10)
    pid_file = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {pid_file}; : sk-ant-secret; {then}"
    output = notify.run(f"sh -c '{script}'", ALERT)
    assert output.startswith(outcome)
    assert bool(output) == bool(outcome)
    assert "secret" not in output
    until(lambda: not _is_running(int(pid_file.read_text())), "its child still runs")


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
def test_a_failed_command_is_reported_without_its_secrets(command: str, outcome: str) -> None:
    output = notify.run(command, ALERT)
    assert output.startswith(outcome)
    assert bool(output) == bool(outcome)
    assert "hunter2secret" not in output


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_command_with_endless_output_is_killed(stream: str) -> None:
    endless = f"import sys\nwhile True: sys.{stream}.write('word ' * 1000)"
    output = notify.run(f'{sys.executable} -c "{endless}"', ALERT)
    assert output == "not done within 1 s"


def test_a_running_worker_of_the_release_before_can_post() -> None:
    """It starts the child of the package that replaced its own one."""
    words = [sys.executable, "-I", "-m", "hivepipe.alerts.notify"]
    output = notify.run_with_input(words, json.dumps({"url": "ftp://host", "said": ALERT}))
    assert output == "exit code 1: not an http or https address"


def _invalid_response(peer: socket.socket) -> None:
    peer.sendall(b"hello\r\n\r\n")


def _redirect(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 302 F\r\nLocation: http://127.0.0.1:1/hunter2secret\r\n\r\n")


def _endless_response(peer: socket.socket) -> None:
    """Send bytes often enough that the socket's own timeout never applies."""
    peer.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(50):
        time.sleep(0.2)
        peer.sendall(b"X-%d: a\r\n" % number)


@pytest.fixture
def webhook() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """A server that answers one request with the given function."""
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
    ("answer", "outcome"), [(_invalid_response, "BadStatusLine"), (_redirect, "HTTP 302")]
)
def test_an_invalid_response_is_reported_and_fails_no_job(
    webhook: Callable[[Callable[[socket.socket], None]], str],
    answer: Callable[[socket.socket], None],
    outcome: str,
) -> None:
    assert notify.post(webhook(answer), ALERT) == outcome


@pytest.mark.usefixtures("short_limit")
def test_an_endless_response_is_given_up(
    webhook: Callable[[Callable[[socket.socket], None]], str],
) -> None:
    assert notify.post(webhook(_endless_response), ALERT) == "not done within 1 s"


@pytest.mark.parametrize(
    "address",
    ["http://a b/hunter2secret", "http://h:abc/hunter2secret", "ftp://hunter2secret", "http://[x/"],
)
def test_an_invalid_address_is_reported_without_its_text(address: str) -> None:
    outcome = notify.post(address, ALERT)
    assert outcome
    assert "not done" not in outcome
    assert "hunter2secret" not in outcome
