"""deletions.log in the home: every deletion by retention, one JSON object per line.

{"at": "2026-11-22T09:00:00Z", "kind": "archive", "path": "...", "age_days": 401.2,
 "rule": "[retention] archives = 365"}
"""

import fcntl
import os
import time
from typing import NamedTuple

import orjson

from hivepipe.files.regular_file import regular
from hivepipe.home import make_folders

NAME = "deletions.log"
LARGEST_BYTES = 4_000_000


class Deletion(NamedTuple):
    """One deleted file, or a number of rows of one table."""

    at: str
    kind: str
    path: str
    age_days: float
    rule: str
    number: int = 1


def record(home: str, kind: str, path: str, age_secs: float, rule: str, number: int = 1) -> None:
    """Append one deletion in a single write; OSError."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    entry = Deletion(at, kind, path, round(age_secs / 86_400, 1), rule, number)
    make_folders(f"{home}/logs")
    name = f"{home}/logs/{NAME}"
    descriptor = _open_locked(name)
    try:
        if os.fstat(descriptor).st_size > LARGEST_BYTES:
            os.replace(name, f"{name}.1")
            record(home, kind, path, age_secs, rule, number)
            return
        os.write(descriptor, orjson.dumps(entry._asdict(), option=orjson.OPT_APPEND_NEWLINE))
    finally:
        os.close(descriptor)


def _open_locked(name: str) -> int:
    """Open the log under a lock, so that two processes do not rotate it at the same time."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        descriptor = os.open(name, flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_open_as(descriptor, name):
            return descriptor
        os.close(descriptor)  # rotated while this process waited for the lock


def _is_open_as(descriptor: int, name: str) -> bool:
    """Return whether this path still names the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(name))
    except FileNotFoundError:
        return False


def deletions(home: str) -> list[Deletion]:
    """Return the deletions, oldest first; invalid lines are skipped."""
    found = []
    for name in (f"{NAME}.1", NAME):
        try:
            with open(f"{home}/logs/{name}", "rb", opener=regular) as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                found.append(Deletion(**orjson.loads(line)))
            except (ValueError, TypeError):
                continue
    return found
