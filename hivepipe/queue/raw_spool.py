"""Raw events, which the native hook writes to the spool if it cannot reach the process `intake`.

    <folder>/spool/<event time>_<pid>.raw    a frame (hivepipe.hook.frame)

A process that drains a spool first converts raw events into spool files of jobs, as the Python hook
writes them. A child process does this (hivepipe.hook.convert_spool); it takes on the environment of
each event's hook.
"""

import fcntl
import os
import subprocess
from collections.abc import Container
from itertools import islice
from pathlib import Path

import orjson

from hivepipe.programs import module
from hivepipe.queue.spooled import raw_events

_MODULE = "hivepipe.hook.convert_spool"
_AT_ONCE = 500
_PREFIX_BYTES = 12  # size of the part before the head, whose size is in bytes 4 to 8
_SECS = 60  # limit of one conversion; the next one continues


def session_of(data: bytes) -> str:
    """Return the session of a raw event, or "" if the event has no session or cannot be read."""
    try:
        fields = orjson.loads(data[_PREFIX_BYTES + int.from_bytes(data[4:8], "little") :])
        session = fields.get("session_id") or fields.get("parent_session_id")
    except (ValueError, AttributeError):
        return ""
    return session if isinstance(session, str) else ""


def convert_all(home: str) -> None:
    """Try once to convert each raw event of a home into a spool file; failed ones stay raw."""
    tried: set[Path] = set()
    while some := convert_raw_events(home, tried):
        tried.update(some)


def convert_raw_events(home: str, without: Container[Path] = ()) -> list[Path]:
    """Convert the oldest raw events, except `without`; return those tried. Failed ones stay.

    If a signal or the time limit ends the converter at an event, those after it were not tried.
    """
    free = (path for path in raw_events(home) if path not in without and not _is_held(path))
    tried = list(islice(free, _AT_ONCE))
    if tried and _was_killed(module(_MODULE, *tried)):
        return _up_to_first_left(tried)
    return tried


def _was_killed(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=_SECS, check=False)
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
    return done.returncode < 0


def _up_to_first_left(paths: list[Path]) -> list[Path]:
    left = next((at for at, path in enumerate(paths) if path.exists()), len(paths))
    return paths[: left + 1]


def _is_held(path: Path) -> bool:
    """Tell whether the intake or a converter holds this event's file, or just removed it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return not path.exists()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # another process holds the lock, or the file system has no locks
        return True
    else:
        return False
    finally:
        os.close(descriptor)
