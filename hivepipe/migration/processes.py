"""Processes of the predecessor: its queue worker, and processes that have its files open.

These processes belong to the user, so they are reported and never ended.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from hivepipe.stack.stack_processes import users_processes, value_or

_WORKER = re.compile(r"(.*/)?queue-worker(-macos)?\.sh")


class OldProcess(NamedTuple):
    """A process of the predecessor, and why the migration reports it."""

    pid: int
    text: str


def find_processes(project: str, moved: Iterable[Path]) -> list[OldProcess]:
    """Return the old queue workers of a project, and processes with an open file below `moved`."""
    folders = tuple(f"{path}/" for path in moved)
    names = set(map(str, moved))
    return [
        OldProcess(process.pid, text)
        for process in users_processes()
        if (text := _worker_text(process, project) or _holds(process, names, folders))
    ]


def _worker_text(process: psutil.Process, project: str) -> str:
    """Return a text that names the queue worker's script, or "" for other processes."""
    scripts = [word for word in value_or(process.cmdline, [])[:4] if _WORKER.fullmatch(word)]
    if not scripts:
        return ""
    folder = str(value_or(process.cwd, ""))
    is_here = f"{folder}/".startswith(f"{project}/") or scripts[0].startswith(f"{project}/")
    return f"the old queue worker, {scripts[0]}" if is_here else ""


def _holds(process: psutil.Process, names: set[str], folders: tuple[str, ...]) -> str:
    for file in value_or(process.open_files, []):
        if file.path in names or file.path.startswith(folders):
            return f"{value_or(process.name, 'it')} has {file.path} open"
    return ""
