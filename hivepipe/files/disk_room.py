"""Free space on the disk of a folder, which may not exist yet."""

import errno
import os
import shutil
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)  # the disk is full, or the user's quota is used up


def free_bytes(folder: str | Path) -> int | None:
    """Return the free bytes, or None if the file system does not report its size."""
    usage = shutil.disk_usage(_existing(folder))
    return usage.free if usage.total else None


def has_less(folder: str | Path, size: float) -> bool:
    """Tell whether the disk has less free bytes than `size`; return False if that is unknown."""
    free = free_bytes(folder)
    return free is not None and free < size


def is_full(folder: str | Path) -> bool:
    """Tell whether no file can be created, for lack of bytes or inodes.

    Inodes are ignored on a file system that does not report their number. Root can also use the
    reserved blocks and inodes.
    """
    disk = os.statvfs(_existing(folder))
    is_root = os.geteuid() == 0
    blocks, inodes = (disk.f_bfree, disk.f_ffree) if is_root else (disk.f_bavail, disk.f_favail)
    return (disk.f_blocks > 0 and not blocks) or (disk.f_files > 0 and not inodes)


def _existing(folder: str | Path) -> Path:
    """Return the folder or its nearest existing parent."""
    return next(path for path in (Path(folder), *Path(folder).parents) if os.path.isdir(path))
