"""Find programs in the absolute folders of PATH only, run them, and check or end their processes.

A relative entry of PATH, such as `.` or `node_modules/.bin`, names a folder of the current project.
A cloned project could contain its own `git` or `redis-server` there.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from hivepipe import settings

LOOK_EVERY_SECS = 0.1
_ERRORS_BYTES = 2_000
_SUPERVISORD = "supervisor.supervisord"  # a word of supervisord's command line
_ROUNDS = 20  # a process that cannot be killed must not hold up the caller


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, given its name or its path, or None."""
    return next(find_programs(name), None)


def find_programs(name: str) -> Iterator[str]:
    """Yield the absolute paths of the programs of this name on PATH, or `name` if it is a path."""
    if "/" in name:
        names = [os.path.abspath(name)]
    else:
        folders = settings.absolute_entries(settings.environment("PATH") or "").split(":")
        names = [os.path.join(folder, name) for folder in folders if folder]
    yield from filter(None, map(shutil.which, names))  # noqa: TID251  the only caller


def module(name: str, *arguments: object) -> list[str]:
    """Return the command line that runs a module in this Python: isolated, and always in UTF-8."""
    return [sys.executable, "-I", "-X", "utf8", "-m", name, *map(str, arguments)]


def run_to_end(
    words: Sequence[str | os.PathLike[str]],
    secs: float,
    env: Mapping[Any, Any] | None = None,
    *,
    raises: tuple[type[OSError], ...] = (),
) -> "subprocess.CompletedProcess[bytes] | None":
    """Run a program without input; return None if it cannot be started or takes longer than `secs`.

    The exit code is not checked. `env` is the program's environment, by default that of this
    process. `raises` are errors that the caller handles.
    """
    try:
        return subprocess.run(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=secs,
            check=False,
        )
    except raises:
        raise
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def process_exists(pid: int) -> bool:
    """Tell whether a process has this id; zombies and other users' processes count too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_group(process: "subprocess.Popen[Any]") -> None:
    """Kill a process that leads its own group, and all of the group; close the process's pipes.

    If the process is still running, also kill its descendants in other groups, except stacks.
    """
    try:
        if process.poll() is None:
            _end_children(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        process.wait()


def _end_children(pid: int) -> None:
    """Suspend a process, so that it starts no other process, and kill all its descendants.

    A descendant whose parent has ended is found only if this process is a subreaper.
    """
    psutil = import_module("psutil")  # 1.4 MB of memory, and rarely needed
    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        parent.suspend()
        for _ in range(_ROUNDS):  # a killed process may have started another
            children = parent.children(recursive=True)
            stacks = {process for each in children for process in _stack_of(each)}
            if not [each for each in children if each not in stacks and _kill(each)]:
                return


def _stack_of(process: Any) -> list[Any]:
    """Return the processes of a stack if `process` is its supervisor, else [].

    A stack serves all sessions of a project, not only the program that started it.
    """
    try:
        is_supervisor = _SUPERVISORD in process.cmdline()
        return [process, *process.children(recursive=True)] if is_supervisor else []
    except import_module("psutil").Error:
        return []


def _kill(process: Any) -> bool:
    """Kill a process; return whether it was running."""
    try:
        if process.status() == "zombie":
            return False
        process.kill()
    except import_module("psutil").Error:
        return False
    return True


class Child:
    """A running program: its output so far, and the last part of its stderr."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector
    ) -> None:
        self._process, self._selector = process, selector
        for pipe in filter(None, (process.stdout, process.stderr)):
            selector.register(pipe, selectors.EVENT_READ)
        self.output = self.errors = b""

    @property
    def code(self) -> int | None:
        """Return the exit code of the program, negative for a signal, or None while it runs."""
        return self._process.poll()

    def has_ended(self) -> bool:
        """Read output for up to LOOK_EVERY_SECS; tell whether the program had ended before.

        Children of the program may keep the pipes open longer than the program.
        """
        is_over = self.code is not None
        if self._selector.get_map():
            self._read(0 if is_over else LOOK_EVERY_SECS)
        elif not is_over:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK_EVERY_SECS)
        return is_over

    def _read(self, secs: float) -> None:
        for key, _ in self._selector.select(secs):
            chunk = os.read(key.fd, 1 << 16)
            if not chunk:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._process.stderr:
                self.errors = (self.errors + chunk)[-_ERRORS_BYTES:]
            else:
                self.output += chunk


@contextmanager
def running(
    words: Sequence[str],
    data: bytes = b"",
    *,
    env: dict[bytes, bytes] | None = None,
    has_output: bool = True,
) -> Iterator[Child]:
    """Run a program in its own group with data on stdin; at the end, kill the whole group.

    With `env`, the program gets that environment and the working folder `/`. Raise OSError,
    ValueError or IndexError if the program cannot be started.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if has_output else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=None if env is None else "/",
        env=env,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        with suppress(BrokenPipeError), process.stdin as stdin:  # some programs do not read it
            stdin.write(data)
        with selectors.DefaultSelector() as selector:
            yield Child(process, selector)
    finally:
        end_group(process)
