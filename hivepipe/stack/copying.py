"""Copies files for a move of a home. A copy gets its name when it is complete and synced."""

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from errno import EINVAL, ENOTSUP
from pathlib import Path

from hivepipe.errors import StoreError
from hivepipe.files.disk_room import has_less
from hivepipe.stack.runtime_folder import make_private

_DATABASES = ".db"
_OF_A_DATABASE = ("-wal", "-shm", "-journal")


def copy_file(source: str, target: str) -> None:
    """Copy a file over another file. May raise OSError or StoreError.

    The copy of a database includes the content of its write-ahead log. So the files -wal, -shm and
    -journal are not copied.
    """
    if source.endswith(_OF_A_DATABASE) or _is_same(source, target):
        return
    make_private(os.path.dirname(target))
    temporary = f"{target}.moving"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    if source.endswith(_DATABASES):
        _copy_database(source, temporary)
    else:
        _link_or_copy(source, temporary)
    os.replace(temporary, target)


def _is_same(source: str, target: str) -> bool:
    try:
        return os.path.samefile(source, target)
    except FileNotFoundError:
        return False


def _copy_database(source: str, target: str) -> None:
    """Copy a database with SQLite's backup, which keeps row ids and allows readers.

    Raise StoreError, and leave no copy, if this fails.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with (
            closing(sqlite3.connect(source, timeout=10)) as db,
            closing(sqlite3.connect(target)) as copy,
        ):
            db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        for suffix in ("", *_OF_A_DATABASE):
            Path(f"{target}{suffix}").unlink(missing_ok=True)
        # SQLite's own words for a full disk may be "disk I/O error"
        is_full = has_less(target, os.path.getsize(source))
        text = f"the disk of {os.path.dirname(target)} is full" if is_full else error
        raise StoreError(f"{source} cannot be copied: {text}") from error
    sync(target)


def sync(path: str) -> None:
    """Sync a file or a folder's list of names; skip folders that their file system cannot sync."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (EINVAL, ENOTSUP) or not os.path.isdir(path):
            raise
    finally:
        os.close(descriptor)


def sync_folders(files: Iterable[str]) -> None:
    """Sync the folders of these files, so that the files keep their names after a power cut."""
    for folder in filter(os.path.isdir, {os.path.dirname(file) for file in files}):
        sync(folder)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)  # no copy, because a home may hold gigabytes
    except OSError:  # hard links do not cross file systems
        shutil.copy2(source, target)
        sync(target)
