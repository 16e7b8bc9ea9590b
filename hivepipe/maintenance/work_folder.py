"""Folders in a home for the data of a running backup or restore."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hivepipe.files.folders import try_lock


@contextmanager
def work_folder(home: str, prefix: str) -> Iterator[str]:
    """Yield a new folder, which is locked during the block. Remove the folders of killed runs."""
    for left in leftovers(home):
        shutil.rmtree(left, ignore_errors=True)  # another backup may remove the folder, too
    with tempfile.TemporaryDirectory(dir=home, prefix=prefix) as folder:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with suppress(OSError):  # the file system has no locks
                try_lock(descriptor)
            yield folder
        finally:
            os.close(descriptor)


def leftovers(home: str) -> list[Path]:
    """Return the folders that killed backups and restores left, which contain copies of data."""
    found = [*Path(home).glob(".backup-*"), *Path(home).glob(".restore-*")]
    return [path for path in found if path.is_dir() and not path.is_symlink() and _is_unused(path)]


def _is_unused(folder: Path) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # another backup removed the folder
        return False
    try:
        return try_lock(descriptor)
    except OSError:  # the file system has no locks
        return False
    finally:
        os.close(descriptor)
