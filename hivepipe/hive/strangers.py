"""Processes on a worker's session that no run of ours is: a person's, or the written recipe's.

Three signs, of which a process may show any: its arguments name the session, its output goes to the
worker's transcript, or a hook of it said to this home which session it is in. Where the system
has no /proc the second is missing.
"""

import os
from collections.abc import Iterator

import psutil

from hivepipe.hive.worker import Worker
from hivepipe.intake import fate, instance

_NAMING = ("--session-id", "--resume", "-r")


class Strangers:
    """One look at all processes; ask it about as many workers as you like."""

    def __init__(self, home: str) -> None:
        """Look."""
        self._home = home
        self._by_session: dict[str, int] = {}
        self._by_output: dict[tuple[int, int], int] = {}
        for pid, arguments in _processes():
            for session in _sessions(arguments):
                self._by_session.setdefault(session, pid)
            if output := _output(pid):
                self._by_output.setdefault(output, pid)
        for pid, session in _reported(home):
            self._by_session.setdefault(session, pid)

    def of(self, worker: Worker) -> int:
        """Return the pid of a process on a worker's session; 0: none is seen."""
        session = worker.card().session
        if session and (pid := self._by_session.get(session.lower())):
            return pid
        try:
            file = os.lstat(worker.transcript)
        except OSError:
            return 0
        return self._by_output.get((file.st_dev, file.st_ino), 0)


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield every process but this one, with those arguments that we may see."""
    for process in psutil.process_iter(["cmdline"]):
        if process.pid != os.getpid() and process.info["cmdline"]:
            yield process.pid, process.info["cmdline"]


def _sessions(arguments: list[str]) -> Iterator[str]:
    """Yield the sessions that a command line names, as Claude Code's options do."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, is_joined, value = word.partition("=")
        if name in _NAMING:
            yield (value if is_joined else following).lower()


def _output(pid: int) -> tuple[int, int] | None:
    """Return device and number of the file that a process writes its output to."""
    try:
        file = os.stat(f"/proc/{pid}/fd/1")
    except OSError:
        return None
    return file.st_dev, file.st_ino


def _reported(home: str) -> Iterator[tuple[int, str]]:
    """Yield the living processes whose hooks report to a home, with the session each is in."""
    try:
        keys = os.listdir(f"{home}/instances")
    except FileNotFoundError:
        return
    for key in keys:
        known = instance.remembered(home, key)
        pid, started = known.get("pid", ""), known.get("started", "")
        if key == pid and started and fate.lives(int(pid), started):
            yield int(pid), known.get("session", "").lower()
