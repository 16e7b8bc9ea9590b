"""Processes that still work for the predecessor: its queue worker, and whatever has its files open.

They are named, never ended: they are the user's.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from hivepipe.stack.members import asked, others

_WORKER = re.compile(r"(.*/)?queue-worker(-macos)?\.sh")


class OldProcess(NamedTuple):
    """A process and why it matters."""

    pid: int
    text: str


def find_processes(project: str, moved: Iterable[Path]) -> list[OldProcess]:
    """Return the workers of this project, and who has a file open below one of these paths."""
    folders = tuple(f"{path}/" for path in moved)
    names = set(map(str, moved))
    return [
        OldProcess(process.pid, text)
        for process in others()
        if (text := _is_worker(process, project) or _holds(process, names, folders))
    ]


def _is_worker(process: psutil.Process, project: str) -> str:
    """Return its script if it is the project's queue worker: run from there, or working there."""
    scripts = [word for word in asked(process.cmdline, [])[:4] if _WORKER.fullmatch(word)]
    if not scripts:
        return ""
    folder = str(asked(process.cwd, ""))
    is_here = f"{folder}/".startswith(f"{project}/") or scripts[0].startswith(f"{project}/")
    return f"the old queue worker, {scripts[0]}" if is_here else ""


def _holds(process: psutil.Process, names: set[str], folders: tuple[str, ...]) -> str:
    for file in asked(process.open_files, []):
        if file.path in names or file.path.startswith(folders):
            return f"{asked(process.name, 'it')} has {file.path} open"
    return ""
