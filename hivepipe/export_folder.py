"""The folder of the exports: files that others read, replaced whole, under one lock.

The lock is the kernel's, on a file that is never removed: a lock file that is made anew is a second
lock. Readers need none: they see the old file or the new one.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hivepipe.home import make_folders

LOCK_SECS = 1.0
POLL_SECS = 0.02
TAIL_BYTES = 1 << 16
LOG_BYTES = 1_000_000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a named pipe in a file's place must not hang anybody.
_FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class ExportFolder:
    """The open folder, while its lock is held."""

    def __init__(self, descriptor: int, lock: int) -> None:
        """Both descriptors are the caller's to close."""
        self._descriptor = descriptor
        self._lock = lock

    def mark(self) -> int:
        """Return the number that was left here the last time; 0 if none was."""
        text = os.pread(self._lock, 32, 0)
        return int(text) if text.strip().isdigit() else 0

    def leave_mark(self, number: int) -> None:
        """Leave a number for whoever comes next."""
        os.pwrite(self._lock, f"{number:>20}\n".encode(), 0)

    def replace(self, name: str, data: bytes) -> None:
        """Write a file in one step, for the user alone; a power cut leaves the old or the new."""
        temporary = f".{name}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(temporary, flags | _FILE, 0o600, dir_fd=self._descriptor)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def tail(self, name: str, size: int = TAIL_BYTES) -> bytes:
        """Return the end of a file; nothing where there is none."""
        try:
            descriptor = os.open(name, os.O_RDONLY | _FILE, dir_fd=self._descriptor)
        except FileNotFoundError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - size, 0))
            return file.read()

    def append(self, name: str, lines: list[str]) -> None:
        """Add lines to a log in one write; one that has grown is kept as `<name>.1`."""
        torn = self.tail(name, 1) not in (b"", b"\n")  # a kill or a full disk in mid-write
        data = (("\n" if torn else "") + "".join(f"{line}\n" for line in lines)).encode()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(name, flags | _FILE, 0o600, dir_fd=self._descriptor)
        try:
            if os.fstat(descriptor).st_size > LOG_BYTES:
                os.rename(
                    name, f"{name}.1", src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
                )
                self.append(name, lines)
                return
            os.write(descriptor, data)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: str, name: str) -> Iterator[ExportFolder]:
    """Hold the lock of some exports; TimeoutError: somebody else has held it for a second."""
    before = os.umask(0o077)
    try:
        make_folders(path)
    finally:
        os.umask(before)
    folder = os.open(path, _FOLDER)
    try:
        flags = os.O_RDWR | os.O_CREAT
        lock = os.open(f".{name}.lock", flags | _FILE, 0o600, dir_fd=folder)
        try:
            _take(lock, name)
            yield ExportFolder(folder, lock)
        finally:
            os.close(lock)
    finally:
        os.close(folder)


def _take(lock: int, name: str) -> None:
    deadline = time.monotonic() + LOCK_SECS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"somebody else holds the lock of {name}") from None
            time.sleep(POLL_SECS)
