"""What a stack consists of: one table behind the supervisor's programs and the Procfile.

And how its processes are found and ended when no supervisor does it.
"""

import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil

import hivepipe
from hivepipe.errors import StackError

KILL_SECS = 10
POLL_SECS = 0.02

# Paths are relative to the home, where supervisord runs: a home may hold any character.
# startsecs=0: a program that cannot start is tried about once a second and never given up.
_HEAD = """\
[supervisord]
nodaemon=true
silent=true
nocleanup=true
logfile=logs/supervisord.log
logfile_maxbytes=1MB
logfile_backups=2
pidfile=%(here)s/supervisord.pid
[unix_http_server]
file=%(here)s/supervisor.sock
chmod=0700
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
_PROGRAM = """\
[program:{name}]
command={command}
priority={priority}
startsecs=0
autorestart=true
stopasgroup=true
killasgroup=true
stopwaitsecs={stop_secs}
redirect_stderr=true
stdout_logfile=logs/{name}.log
stdout_logfile_maxbytes=1MB
stdout_logfile_backups=2
"""


class Process(NamedTuple):
    """One long-lived process."""

    name: str
    script: str
    stop_secs: int
    priority: int  # starts in rising order, stops in falling order


PROCESSES = (
    Process("redis", "redis.py", stop_secs=10, priority=1),
    Process("writer", "writer.py", stop_secs=30, priority=10),
    Process("slow", "slow.py", stop_secs=10, priority=10),
    Process("llm", "llm.py", stop_secs=10, priority=10),
)


def root_folder() -> Path:
    """Return the folder of `hooks` and `workers`; in a wheel, of `_hooks` and `_workers`."""
    package = Path(hivepipe.__file__).parent
    return package if (package / "_workers").is_dir() else package.parent


def hooks_folder() -> Path:
    """Return the folder of the hook executables."""
    return _in_root("hooks")


def script_path(process: Process) -> Path:
    """Return where the entry point of this process lies."""
    return _in_root("workers") / process.script


def _in_root(name: str) -> Path:
    root = root_folder()
    in_wheel = root / f"_{name}"
    return in_wheel if in_wheel.is_dir() else root / name


def procfile() -> str:
    """Return the text of the Procfile."""
    return "".join(f"{entry.name}: python -I workers/{entry.script}\n" for entry in PROCESSES)


def render() -> str:
    """Return supervisord's configuration."""
    return _HEAD + "".join(
        _PROGRAM.format(command=_command(entry), **entry._asdict()) for entry in PROCESSES
    )


def _command(entry: Process) -> str:
    """Quote for both readers: shlex, and an ini file where ` ;` and ` #` begin a comment."""
    words = (sys.executable, "-I", str(script_path(entry)))
    quoted = " ".join(map(shlex.quote, words)).replace("%", "%%")
    return quoted.replace(";", "'\";\"'").replace("#", "'\"#\"'")


def holders(paths: Iterable[str]) -> Iterator[psutil.Process]:
    """Yield the processes that have one of these lock files open, but not this one."""
    wanted = set(paths)
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and wanted & {f.path for f in process.open_files()}:
                yield process
        except (psutil.Error, OSError):
            continue


def command_line(process: psutil.Process) -> list[str]:
    """Return the arguments of a process, empty if it has just ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def children(process: psutil.Process) -> list[psutil.Process]:
    """Return all descendants of a process."""
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def signal_all(group: list[psutil.Process], send: Any) -> None:
    """Signal each process that still exists."""
    for process in group:
        try:
            send(process)
        except psutil.Error:
            continue


def end(group: list[psutil.Process], secs: float) -> None:
    """Terminate these processes, and kill those that have not gone after so long."""
    signal_all(group, psutil.Process.terminate)
    left = wait(group, secs)
    signal_all(left, psutil.Process.kill)
    if wait(left, KILL_SECS):
        raise StackError(f"cannot end {', '.join(str(process.pid) for process in left)}")


def wait(group: list[psutil.Process], secs: float) -> list[psutil.Process]:
    """Return those that still run after so long; a zombie is gone (nobody may ever reap it)."""
    deadline = time.monotonic() + secs
    while (group := [entry for entry in group if _runs(entry)]) and time.monotonic() < deadline:
        time.sleep(POLL_SECS)
    return group


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
