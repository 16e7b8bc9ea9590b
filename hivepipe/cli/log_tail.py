"""The log lines of a stack's processes, and how they are printed."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hivepipe.cli.terminal import say
from hivepipe.files.regular_file import regular
from hivepipe.stack.processes import PROCESSES

FOLLOW_SECS = 0.2
_MOST_BYTES = 2 << 20  # supervisord begins a new file at 1 MB
PROGRAMS = tuple(entry.name for entry in PROCESSES)
NAMES = ("supervisord", *PROGRAMS)


class _Look(NamedTuple):
    """The result of one read of a log: the inode and size of the log, and the data read."""

    inode: int = 0
    size: int = 0
    data: bytes = b""


class Tail:
    """Reads the process logs of a home, each from the offset where the previous read ended."""

    def __init__(self, home: str, names: Iterable[str] = NAMES) -> None:
        logs = (Path(home, "logs", f"{name}.log") for name in names)
        self._seen = dict.fromkeys(logs, (0, 0))  # inode, and offset up to which it was read

    def last_lines(self, count: int) -> list[tuple[str, str]]:
        """Return the last `count` lines of each log as (process, line)."""
        lines = []
        for log in self._seen:
            before, now = _look(_rotated(log)), _look(log)
            self._seen[log] = (now.inode, now.size)
            read = (before.data + now.data).decode("utf-8", "replace").splitlines()
            lines += [(log.stem, line) for line in read[max(len(read) - count, 0) :]]
        return lines

    def new_lines(self) -> list[tuple[str, str]]:
        """Return the complete lines that were added since the last call as (process, line)."""
        lines = []
        for log, (inode, offset) in self._seen.items():
            rest, now = b"", _look(log, offset)
            if now.inode != inode or now.size < offset:  # the log was rotated, or a user emptied it
                old = _look(_rotated(log), offset)
                rest = old.data if old.inode == inode else b""
                offset, now = 0, _look(log, 0)
            new, newline, _ = now.data.rpartition(b"\n")
            self._seen[log] = (now.inode, offset + len(new) + len(newline))
            read = (rest + new).decode("utf-8", "replace").splitlines()
            lines += [(log.stem, line) for line in read]
        return lines


def show_lines(lines: list[tuple[str, str]]) -> None:
    """Print each line after the name of its process."""
    for name, line in lines:
        say(f"{name:<11} {line}")


def _rotated(log: Path) -> Path:
    """Return the path to which the log is renamed at a rotation."""
    return log.with_name(f"{log.name}.1")


def _look(log: Path, start: int | None = None) -> _Look:
    """Read a log from the offset `start`, or by default only its last bytes."""
    try:
        with open(log, "rb", buffering=0, opener=regular) as stream:
            status = os.fstat(stream.fileno())
            begin = max(status.st_size - _MOST_BYTES, 0) if start is None else start
            length = max(min(status.st_size - begin, _MOST_BYTES), 0)
            data = os.pread(stream.fileno(), length, begin)
            return _Look(status.st_ino, status.st_size, data)
    except FileNotFoundError:
        return _Look()
