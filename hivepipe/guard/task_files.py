"""Tasks of sessions, for hooks: files in the home, each written atomically.

tasks/cancelled/<task>      time and reason; every tool call of the task's sessions is denied
tasks/sessions/<session>    the session's task
"""

import os
from contextlib import suppress
from pathlib import Path

from hivepipe.guard.client import assignment_path, cancellation_path
from hivepipe.home import make_folders, read_small, write_small


def cancel(home: str, task: str, time: str, reason: str) -> None:
    """Deny every tool call of the task's sessions from now on. Raise OSError on failure."""
    _write(cancellation_path(home, task), f"{time}\n{reason}\n" if reason else f"{time}\n")


def allow(home: str, task: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(cancellation_path(home, task))


def assign(home: str, task: str, session: str) -> None:
    _write(assignment_path(home, session), f"{task}\n")


def release(home: str, task: str) -> None:
    """Remove the task from all sessions that it was assigned to."""
    for path in Path(assignment_path(home, "")).glob("*"):
        if read_small(str(path)).strip() == task:
            path.unlink(missing_ok=True)


def _write(path: str, text: str) -> None:
    make_folders(os.path.dirname(path))
    write_small(path, text)
