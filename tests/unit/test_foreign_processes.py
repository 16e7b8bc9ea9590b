"""Processes that use a worker's session and were not started by hivepipe."""

import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from hivepipe.orchestrator import foreign_processes
from hivepipe.orchestrator.foreign_processes import ForeignProcesses
from hivepipe.orchestrator.worker import Worker

SESSION = "0b6a3c1e-6f2b-4c55-9a3e-0d5d5f0f8a11"
NAMING: dict[str, list[str | bytes]] = {
    "in two words": ["claude", "--resume", SESSION],
    "in one word, in capitals": ["claude", f"--session-id={SESSION.upper()}"],
    "behind a word that is not UTF-8": ["claude", b"\xff", "-r", SESSION],
    "behind a long prompt": ["claude", "x" * 100_000, "--resume", SESSION],
    "in the title of a program that renamed itself": [f"claude --resume {SESSION}"],
}
NOT_NAMING: dict[str, list[str | bytes]] = {
    "another session": ["claude", "--resume", f"{SESSION}0"],
    "no option": ["grep", SESSION],
    "a prompt": ["claude", "-p", f"What does --resume {SESSION} do?"],
}


@pytest.fixture(params=["/proc", "/nowhere"], ids=["from-proc", "by-psutil"])
def worker(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Worker:
    """A worker with a session, on systems with and without /proc."""
    monkeypatch.setattr(foreign_processes, "_PROC", request.param)
    made = Worker(tmp_path / f"shop-{SESSION}", tmp_path / "state")
    made.folder.mkdir()
    (made.folder / "session-id").write_text(SESSION)
    return made


@pytest.mark.parametrize("place", NAMING)
def test_a_process_is_found_by_its_command_line(worker: Worker, place: str) -> None:
    assert is_found(worker, NAMING[place])


@pytest.mark.parametrize("place", NOT_NAMING)
def test_a_process_that_names_no_session_is_not_found(worker: Worker, place: str) -> None:
    assert not is_found(worker, NOT_NAMING[place])


def test_a_process_that_ended_since_is_not_found(worker: Worker) -> None:
    with subprocess.Popen(
        ["claude", "-s", "--", "--resume", SESSION], executable="/bin/sh", stdin=PIPE, stdout=PIPE
    ) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write(b"echo\nread _\n")
        running.stdin.flush()
        running.stdout.readline()
        found = ForeignProcesses(str(worker.state))
        assert found.of(worker) == running.pid
        running.stdin.close()
    assert found.of(worker) == 0


def is_found(worker: Worker, words: list[str | bytes]) -> bool:
    """Return whether a process with these words in its command line is found."""
    command = [words[0], *(["-s", "--"] if words[1:] else []), *words[1:]]
    with subprocess.Popen(command, executable="/bin/sh", stdin=PIPE, stdout=PIPE) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write(b"echo\nread _\n")
        running.stdin.flush()
        running.stdout.readline()  # the kernel shows no command line until the program runs
        found = ForeignProcesses(str(worker.state)).of(worker)
        running.stdin.close()
    assert found in (0, running.pid)
    return found != 0
