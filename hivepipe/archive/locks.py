"""Locks between processes: for the index, for learned secrets, and 256 locks for the archives.

A hash of an archive's key selects the lock of the archive. The size of the lock file for learned
secrets counts their writes.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hivepipe.files.change_stamp import Stamp
from hivepipe.files.folders import Folder, try_lock
from hivepipe.home import short_hash

FOLDER = ".archive-locks"
SECRETS = "secrets"
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
def changing_secrets(root: str) -> Iterator[None]:
    """Hold the lock for writing learned secrets, and change `secrets_stamp`.

    The size of the lock file is odd during the block, and also after a block that failed.
    """
    with _held(root, SECRETS, lambda: None) as descriptor:
        size = os.fstat(descriptor).st_size | 1
        os.ftruncate(descriptor, size)
        yield
        os.ftruncate(descriptor, size + 1)


def secrets_stamp(root: str) -> Stamp | None:
    """Return a value that differs after learned secrets were written, whatever the clock says.

    Return None if this is unknown, because they may be written just now. Read the secrets after
    this call.
    """
    try:
        with Folder(root, FOLDER) as folder:
            status = folder.status(SECRETS)
    except FileNotFoundError:
        return ()
    except OSError:
        return None
    if status is None:
        return ()
    return None if status.st_size % 2 else (status.st_ino, status.st_size)


@contextmanager
def _held(root: str, name: str, wait: Callable[[], None]) -> Iterator[int]:
    with Folder(root, FOLDER, make=True) as folder:
        descriptor = folder.open(name, os.O_RDWR | os.O_CREAT)
    try:
        while not try_lock(descriptor):
            wait()
            time.sleep(POLL_SECS)
        yield descriptor
    finally:
        os.close(descriptor)
