"""Find and end the processes of a stack without asking its supervisor.

A process belongs to a stack if it has a lock file of the stack open. The runtime folder and its
locks may be deleted at logout. After that, supervisord and the workers are recognised by their
HIVEPIPE_HOME. Redis overwrites its environment with a title, and is recognised by the socket's path
in the title.
"""

import os
import select
import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import chain
from typing import Any

import psutil

from hivepipe.errors import StackError
from hivepipe.stack.processes import PROCESSES
from hivepipe.stack.runtime_folder import Stack

KILL_SECS = 10
POLL_SECS = 0.02
SUPERVISOR = "supervisor"

_SCRIPTS = {entry.script: entry.name for entry in PROCESSES}
_SUPERVISORD = "supervisor.supervisord"


class ProcessTable:
    """The processes of this user, read once, when they are first needed.

    Reading all processes takes longer than all other steps of a report, so the reports on many
    stacks share a table. The table is indexed by the paths that identify a stack.
    """

    def supervisors(self) -> dict[psutil.Process, str]:
        """Return supervisor -> last word of its command line, for the supervisors of all stacks."""
        found = [entry for entry in self._entries if entry.program == SUPERVISOR]
        return {entry.process: entry.words[-1] for entry in found}

    @cached_property
    def _entries(self) -> list["_Entry"]:
        return [_Entry(process) for process in users_processes()]

    @cached_property
    def _by_path(self) -> dict[str, list["_Entry"]]:
        """Return path -> processes. A path is an open lock, or a supervisor's or worker's home."""
        found: dict[str, list[_Entry]] = {}
        for entry in self._entries:
            for path in entry.paths():
                found.setdefault(path, []).append(entry)
        return found

    @cached_property
    def _servers(self) -> list["_Entry"]:
        return [entry for entry in self._entries if "-server" in entry.title]

    def of(self, stack: Stack) -> dict[str, list[psutil.Process]]:
        """Return program name -> processes of a stack. The name of the supervisor is SUPERVISOR."""
        locks = {stack.lock(entry.name): entry.name for entry in PROCESSES}
        locks[stack.data_lock] = "redis"
        programs = {
            entry: name for path, name in locks.items() for entry in self._processes_at(path)
        }
        for entry in (*self._processes_at(stack.lock(SUPERVISOR)), *self._processes_at(stack.home)):
            programs.setdefault(entry, entry.program)
        for entry in self._servers:
            if f"{stack.socket} " in entry.title:
                programs.setdefault(entry, "redis")
        found: dict[str, list[psutil.Process]] = {}
        for entry, name in programs.items():
            found.setdefault(name, []).append(entry.process)
        return found

    def _processes_at(self, path: str) -> list["_Entry"]:
        return self._by_path.get(path, [])


def stack_processes(stack: Stack) -> dict[str, list[psutil.Process]]:
    """Return the current processes of one stack as `ProcessTable.of` does."""
    return ProcessTable().of(stack)


class _Entry:
    """A process, with the paths that identify its stack."""

    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.words: list[str] = value_or(process.cmdline, [])
        self.title = f"{' '.join(self.words)} "
        self.program = SUPERVISOR if _SUPERVISORD in self.words else _program_of(self.words)

    def paths(self) -> set[str]:
        """Return the open locks, and the home of a supervisor or worker.

        The supervisor's lock counts only for a supervisor, because commands hold it, too. Other
        locks do not count for a supervisor, because its forks have its command line at first.
        """
        home = {home_of(self.process)} if self.program else set()
        is_supervisor = self.program == SUPERVISOR
        locks = value_or(lambda: open_locks(self.process), [])
        return home.union(
            lock for lock in locks if lock.endswith(f"/{SUPERVISOR}.lock") == is_supervisor
        )


def _program_of(words: list[str]) -> str:
    """Return the program whose script is in this command line, or ""."""
    for word in words[:4]:
        folder, _, name = word.rpartition("/")
        if name in _SCRIPTS and os.path.basename(folder) in ("workers", "_workers"):
            return _SCRIPTS[name]
    return ""


def open_locks(process: psutil.Process) -> list[str]:
    """Return the lock files that a process has open.

    On Linux they are read directly: psutil also reads each file's state, which takes twice as long.
    """
    folder = f"/proc/{process.pid}/fd"
    if os.path.isdir("/proc/self/fd"):
        links = (f"{folder}/{name}" for name in os.listdir(folder))
        paths = [value_or(partial(os.readlink, link), "") for link in links]
    else:
        paths = [file.path for file in process.open_files()]
    return [path for path in paths if path.endswith(".lock")]


def users_processes() -> Iterator[psutil.Process]:
    """Yield the other processes with this effective user id. Raise StackError if none is seen."""
    for process in _visible():
        user = value_or(lambda process=process: process.uids().effective, -1)  # type: ignore[misc]
        if process.pid != os.getpid() and user == os.geteuid():
            yield process


def _visible() -> list[psutil.Process]:
    """Return all processes. Raise StackError if none can be seen, as on Linux without /proc."""
    try:
        return list(psutil.process_iter())
    except (OSError, IndexError):
        raise StackError("processes cannot be seen here: mount /proc") from None


def had_supervisor(stack: Stack, found: dict[str, list[psutil.Process]]) -> bool:
    """Tell whether hivepipe's supervisor started these processes, not another manager."""
    return any(
        value_or(process.environ, {}).get("SUPERVISOR_SERVER_URL") == stack.server_url
        for process in chain(*found.values())
    )


def home_of(process: psutil.Process) -> str:
    return str(value_or(process.environ, {}).get("HIVEPIPE_HOME", ""))


def value_or(ask: Callable[[], Any], otherwise: Any) -> Any:
    """Return the result of a query; return `otherwise` if the process ended or denies access."""
    try:
        return ask()
    except (psutil.Error, OSError):
        return otherwise


def process_tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *value_or(lambda: process.children(recursive=True), [])]


def signal_all(group: list[psutil.Process], send: Any) -> None:
    for process in group:
        value_or(lambda process=process: send(process), None)  # type: ignore[misc]


def end_processes(group: list[psutil.Process], secs: float) -> None:
    """Terminate processes; kill them after `secs`. Raise StackError if one survives SIGKILL."""
    signal_all(group, psutil.Process.terminate)
    left = wait_for_end(group, secs)
    signal_all(left, psutil.Process.kill)
    if wait_for_end(left, KILL_SECS):
        raise StackError(f"cannot end {', '.join(str(process.pid) for process in left)}")


def wait_for_end(group: list[psutil.Process], secs: float) -> list[psutil.Process]:
    """Return the processes that still run after `secs`. A zombie counts as ended."""
    deadline = time.monotonic() + secs
    for process in group:
        while _runs(process) and (left := deadline - time.monotonic()) > 0:
            _pause(process, left)
    return [entry for entry in group if _runs(entry)]


def _pause(process: psutil.Process, secs: float) -> None:
    """Wait up to a second until a process ends; without `os.pidfd_open`, sleep for a moment."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # macOS, an old kernel, or a process that has just ended
        time.sleep(min(POLL_SECS, secs))
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(min(secs, 1) * 1000)  # another process may have taken the pid
    finally:
        os.close(descriptor)


def _runs(process: psutil.Process) -> bool:
    state = value_or(process.status, psutil.STATUS_ZOMBIE)
    return bool(state != psutil.STATUS_ZOMBIE and process.is_running())
