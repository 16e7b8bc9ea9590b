"""Locks between processes: one lock for the index, and 256 locks for the archives.

A hash of an archive's key selects the lock of the archive.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hivepipe.files.folders import Folder, try_lock
from hivepipe.home import short_hash

FOLDER = ".archive-locks"
POLL_SECS = 0.02


@contextmanager
def locked(root: str, key: str, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of the archive with this key, or of the index if the key is "".

    `wait` is called while another process holds the lock. An exception by `wait` ends the wait.
    """
    with _held(root, short_hash(key)[:2] if key else "index", wait):
        yield


def wait_for_holders(root: str) -> None:
    """Wait until every archive lock that is held now has been released."""
    for number in range(256):
        with _held(root, f"{number:02x}", lambda: None):
            pass


@contextmanager
def _held(root: str, name: str, wait: Callable[[], None]) -> Iterator[None]:
    with Folder(root, FOLDER, make=True) as folder:
        descriptor = folder.open(name, os.O_RDWR | os.O_CREAT)
    try:
        while not try_lock(descriptor):
            wait()
            time.sleep(POLL_SECS)
        yield
    finally:
        os.close(descriptor)
