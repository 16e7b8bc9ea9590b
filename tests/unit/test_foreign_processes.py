"""Processes that use a worker's session and were not started by hivepipe."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from uuid import uuid4

import pytest

from hivepipe.orchestrator import foreign_processes
from hivepipe.orchestrator.foreign_processes import ForeignProcesses
from hivepipe.orchestrator.worker import Worker

SESSION = str(uuid4())  # another test process may search for its own at the same time
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
    with running(NAMING["in two words"]) as process:
        found = ForeignProcesses(str(worker.state))
        assert found.of(worker) == process.pid
    assert found.of(worker) == 0


@pytest.mark.parametrize("last_ends", [False, True])
def test_a_process_is_found_beside_one_that_ended_since(worker: Worker, last_ends: bool) -> None:
    words = NAMING["in two words"]
    with running(words) as first, running(words) as last:
        found = ForeignProcesses(str(worker.state))
        ends, stays = (last, first) if last_ends else (first, last)
        end(ends)
        assert found.of(worker) == stays.pid


def test_a_process_that_writes_the_transcript_is_found_beside_one_that_ended_since(
    worker: Worker,
) -> None:
    words = ["/bin/sh", "-c", "(echo >&2); read _"]  # the shell keeps its output meanwhile
    with (
        worker.transcript.open("wb") as output,
        running(NAMING["in two words"]) as named,
        subprocess.Popen(words, stdin=PIPE, stdout=output, stderr=PIPE) as writing,
    ):
        assert writing.stderr
        writing.stderr.readline()
        found = ForeignProcesses(str(worker.state))
        end(named)
        assert found.of(worker) == writing.pid
        end(writing)
        assert found.of(worker) == 0


def is_found(worker: Worker, words: list[str | bytes]) -> bool:
    """Return whether a process with these words in its command line is found."""
    with running(words) as process:
        found = ForeignProcesses(str(worker.state)).of(worker)
    assert found in (0, process.pid)
    return found != 0


@contextmanager
def running(words: list[str | bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a shell with these words in its command line."""
    command = [words[0], *(["-s", "--"] if words[1:] else []), *words[1:]]
    with subprocess.Popen(command, executable="/bin/sh", stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"echo\nread _\n")
        process.stdin.flush()
        process.stdout.readline()  # the kernel shows no command line until the program runs
        yield process
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.close()
    process.wait()
