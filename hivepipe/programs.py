"""Find programs in the absolute folders of PATH only, and check or end their processes.

A relative entry, such as `.` or `node_modules/.bin`, names a folder of the current project: a clone
could contain a `git` or a `redis-server` there.
"""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import Any

from hivepipe import settings


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, given by its name or its path, or None."""
    if "/" in name:
        return shutil.which(os.path.abspath(name))  # noqa: TID251  the only caller
    path = settings.absolute_entries(settings.environment("PATH") or "")
    return shutil.which(name, path=path)  # noqa: TID251


def process_exists(pid: int) -> bool:
    """Tell whether a process has this id; a zombie and another user's process count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_group(process: "subprocess.Popen[Any]") -> None:
    """Kill a process that leads its own group, with its children, and close its pipes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()
    process.wait()
