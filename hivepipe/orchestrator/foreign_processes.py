"""Find processes that use a worker's session but were not started by hivepipe.

One of three signs is enough: the arguments of a process name the session, the standard output of
the process is the worker's transcript, or a hook of the process reported the session to this home.
The second sign needs /proc.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

from hivepipe.files.regular_file import read_bytes
from hivepipe.hook import alive, instance
from hivepipe.orchestrator.worker import Worker

_NAMING = ("--session-id", "--resume", "-r")
_PROC = "/proc"


class ForeignProcesses:
    """A snapshot of all processes, for lookups of any number of workers."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._by_session: defaultdict[str, list[int]] = defaultdict(list)
        self._by_output: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for pid, arguments in _processes():
            for session in _sessions(arguments):
                self._by_session[session].append(pid)
            if output := _output(pid):
                self._by_output[output].append(pid)
        for pid, session in _reported(home):
            self._by_session[session].append(pid)
        self._by_session.pop("", None)  # the session of a worker may be unknown too

    def of(self, worker: Worker) -> int:
        """Return the pid of a process that uses a worker's session, or 0.

        The process must still be running, because a process that ended after the snapshot may have
        been the worker's own.
        """
        naming = self._by_session.get(worker.card().session.lower(), [])
        pids = [*naming, *self._writing(worker)]
        return next((pid for pid in pids if alive.lives(pid, "")), 0)

    def _writing(self, worker: Worker) -> list[int]:
        try:
            file = os.lstat(worker.transcript)
        except OSError:
            return []
        return self._by_output.get((file.st_dev, file.st_ino), [])


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield pid and arguments of all other processes whose arguments can be read."""
    read = _read_proc if os.path.exists(f"{_PROC}/self/cmdline") else _ask_psutil
    for pid, arguments in read():
        if pid != os.getpid() and arguments:
            yield pid, arguments


def _read_proc() -> Iterator[tuple[int, list[str]]]:
    """Yield pid and arguments of the processes in /proc; psutil takes several times as long."""
    for name in filter(str.isdecimal, os.listdir(_PROC)):
        with suppress(OSError):
            data = read_bytes(f"{_PROC}/{name}/cmdline")
            words = os.fsdecode(data).rstrip("\0").split("\0")
            is_title = len(words) == 1  # a title set by the program has spaces, not NULs
            yield int(name), words[0].split() if is_title else words


def _ask_psutil() -> Iterator[tuple[int, list[str]]]:
    psutil = import_module("psutil")  # 1.4 MB of memory, which a home without hives does not need
    for process in psutil.process_iter(["cmdline"]):
        yield process.pid, process.info["cmdline"]


def _sessions(arguments: list[str]) -> Iterator[str]:
    """Yield the sessions named by the options of Claude Code in a command line."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, is_joined, value = word.partition("=")
        if name in _NAMING:
            yield (value if is_joined else following).lower()


def _output(pid: int) -> tuple[int, int] | None:
    """Return device and inode of a process's standard output, or None."""
    try:
        file = os.stat(f"/proc/{pid}/fd/1")
    except OSError:
        return None
    return file.st_dev, file.st_ino


def _reported(home: str) -> Iterator[tuple[int, str]]:
    """Yield (pid, session) for each running process whose hooks report to a home."""
    try:
        keys = os.listdir(f"{home}/instances")
    except FileNotFoundError:
        return
    for key in keys:
        known = instance.remembered(home, key)
        pid, started = known.get("pid", ""), known.get("started", "")
        if key == pid and started and alive.lives(int(pid), started):
            yield int(pid), known.get("session", "").lower()
