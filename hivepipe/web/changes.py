"""Tells open pages that a database has changed or that a slow value is ready.

The module polls only while a page is open. The module checks the modification times of the files,
because an open connection to each database would keep its write-ahead log from shrinking.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from pathlib import Path

POLL_SECS = 0.5
KEEP_ALIVE_SECS = 10.0
_CHANGED = "data: changed\n\n"
_ALIVE = "event: alive\ndata: -\n\n"  # a page without it for 20 s shows "connection lost"

Signature = tuple[int, ...]


def signature(files: Iterable[Path]) -> Signature:
    """Return a value that changes with each change of one of the files."""
    return tuple(map(_time, files))


def with_logs(databases: Iterable[Path]) -> list[Path]:
    """Return the databases and their write-ahead logs: a commit changes only the log."""
    return [Path(f"{path}{suffix}") for path in databases for suffix in ("", "-wal")]


def _time(path: Path) -> int:
    """Return a file's last change in ns, or 0 if it is missing or empty.

    An empty file does not count, because readers create empty logs.
    """
    try:
        status = os.stat(path)
    except OSError:
        return 0
    return status.st_mtime_ns if status.st_size else 0


class Changes:
    """Watches files with one task for all open pages."""

    def __init__(self, files: Callable[[], list[Path]]) -> None:
        """Set up; `files` returns the paths of the files, and is called at each poll."""
        self._files = files
        self._followers: set[asyncio.Event] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._signature: Signature = ()
        self._notifications = 0

    def notify(self) -> None:
        """Notify all followers at the next poll. Any thread can call this."""
        self._notifications += 1

    async def follow(self) -> AsyncIterator[str]:
        """Yield `alive` at once, an event after each change, and `alive` after 10 s without one."""
        changed = asyncio.Event()
        self._followers.add(changed)
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch())
        try:
            yield _ALIVE
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), KEEP_ALIVE_SECS)
                text = _CHANGED if changed.is_set() else _ALIVE
                changed.clear()
                yield text
        finally:
            self._followers.discard(changed)

    async def _watch(self) -> None:
        """Wake the followers after each change, until there are no followers."""
        before = self._state()
        while self._followers:
            await asyncio.sleep(POLL_SECS)
            now = self._state()
            if now != before:
                for follower in self._followers:
                    follower.set()
            before = now

    def _state(self) -> tuple[int, Signature]:
        with suppress(OSError):  # for example too many open files; the next poll may succeed
            self._signature = signature(self._files())
        return self._notifications, self._signature
