"""The files in which hooks keep the guard's notes of tool calls while Redis cannot be reached.

<folder>/call-notes           hooks append to it, one note per line (hivepipe.queue.spool)
<folder>/call-notes.<time>    set aside for processing
"""

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import orjson

from hivepipe.files.folders import Folder
from hivepipe.guard.client import NOTE_FIELDS
from hivepipe.queue.spool import NOTES


def set_aside_notes(folder: Path) -> list[Path]:
    """Set a folder's file of notes aside; return all files that are set aside, oldest first."""
    with suppress(OSError):  # the file does not exist or cannot be renamed: retried later
        (folder / NOTES).rename(folder / _new_name())
    return sorted(folder.glob(f"{NOTES}.*"))


def move_notes(source: str, target: str, sessions: Collection[str]) -> None:
    """Move these sessions' notes to another home (a kill may duplicate one), or raise OSError."""
    if not sessions:  # read no file in vain, because its size has no limit
        return
    for path in set_aside_notes(Path(source)):
        with Folder(source) as opened, Folder(target) as new_home:
            lines = (opened.read(path.name) or b"").splitlines(keepends=True)
            theirs = [line for line in lines if _session_of(line) in sessions]
            if not theirs:
                continue
            new_home.replace(_new_name(), b"".join(theirs))
            others = b"".join(line for line in lines if _session_of(line) not in sessions)
            if others.strip():
                opened.replace(path.name, others)
            else:
                opened.remove(path.name)


def _new_name() -> str:
    return f"{NOTES}.{time.time_ns():020d}"


def _session_of(line: bytes) -> str:
    """Return the session of a note, or "" for an empty or incomplete line."""
    try:
        return str(orjson.loads(line)[NOTE_FIELDS.index("session")])
    except (ValueError, LookupError, TypeError):
        return ""
