"""File locks that allow one process of each kind per home.

A lock is acquired on an inheritable descriptor before `exec`. So the lock is held exactly as long
as the started process lives. Pid files are not used. Commands that start or stop a whole stack lock
the home's folder itself, which leaves no file behind.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from hivepipe.errors import LockHeldError
from hivepipe.files.regular_file import is_open_as

RETRY_SECS = 0.02


def acquire_lock(path: str, wait_secs: float) -> int:
    """Lock a file; return its inheritable descriptor. Raise LockHeldError after `wait_secs`."""
    descriptor = _locked(path, os.O_RDWR | os.O_CREAT, wait_secs)
    os.set_inheritable(descriptor, True)
    return descriptor


def locked_folder(path: str, wait_secs: float) -> AbstractContextManager[None]:
    """Lock an existing folder. Raise LockHeldError after `wait_secs`."""
    return _held(path, os.O_RDONLY | os.O_DIRECTORY, wait_secs)


def is_locked_folder(path: str) -> bool:
    """Tell whether another process has locked a folder; return False for a missing folder."""
    try:
        return _is_locked(path)
    except OSError:
        return False


def is_locked_file(path: str) -> bool:
    """Tell whether another process has locked a file; return False for a missing file.

    Return True if the file cannot be opened.
    """
    try:
        return _is_locked(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_locked(path: str) -> bool:
    """Look with a shared lock, which others who look do not mistake for an owner's lock."""
    try:
        os.close(_locked(path, os.O_RDONLY | os.O_NONBLOCK, 0, fcntl.LOCK_SH))
    except LockHeldError:
        return True
    return False


def locked_file(path: str, wait_secs: float) -> AbstractContextManager[None]:
    """Lock a file, which is made if it is missing. Raise LockHeldError after `wait_secs`."""
    return _held(path, os.O_RDWR | os.O_CREAT, wait_secs)


@contextmanager
def _held(path: str, flags: int, wait_secs: float) -> Iterator[None]:
    descriptor = _locked(path, flags, wait_secs)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: str, flags: int, wait_secs: float, kind: int = fcntl.LOCK_EX) -> int:
    deadline = time.monotonic() + wait_secs
    while True:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            if time.monotonic() >= deadline:
                raise LockHeldError(
                    f"another process of hivepipe has locked {path}: try again when it has ended"
                ) from None
            time.sleep(RETRY_SECS)
        else:
            if is_open_as(descriptor, path):
                return descriptor
            os.close(descriptor)  # `down` removed the file before the lock was acquired
