"""Append and remove lines of a log in place, so that processes can keep it open for appending."""

import errno
import fcntl
import os
from collections.abc import Collection

from hivepipe.files.regular_file import is_open_as


def open_locked(path: str) -> int:
    """Return the descriptor of a log, opened under its lock.

    So two processes do not rotate it at the same time. A new log gets mode 0600. Raises OSError.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        descriptor = os.open(path, flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_open_as(descriptor, path):
            return descriptor
        os.close(descriptor)  # the file was rotated while this process waited for the lock


def append_whole(descriptor: int, lines: bytes) -> None:
    """Append all lines, or none and raise OSError; the caller holds the lock of the log."""
    before = os.fstat(descriptor).st_size
    if os.write(descriptor, lines) < len(lines):
        os.ftruncate(descriptor, before)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def remove_lines(path: str, needles: Collection[bytes], *, dry_run: bool = False) -> int:
    """Remove the lines that contain any of `needles`; return their number. Raises OSError.

    A missing file has 0 such lines. With `dry_run`, the lines are only counted.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return 0
    with os.fdopen(descriptor, "r+b") as file:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # writers of the audit log take it too
        lines = file.readlines()
        kept = [line for line in lines if not any(mark in line for mark in needles)]
        if len(kept) < len(lines) and not dry_run:
            file.seek(0)
            file.writelines(kept)
            file.flush()
            # Lines that another process appended in between come after the kept lines.
            read = sum(map(len, lines))
            late = os.pread(descriptor, os.fstat(descriptor).st_size - read, read)
            os.pwrite(descriptor, late, sum(map(len, kept)))
            os.ftruncate(descriptor, sum(map(len, kept)) + len(late))
    return len(lines) - len(kept)
