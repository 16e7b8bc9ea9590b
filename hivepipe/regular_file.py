"""Opening what should be a file: a pipe in its place would keep the reader waiting for ever."""

import os
import stat
from errno import EINVAL
from pathlib import Path


def regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a file, new ones 0600; OSError also for a pipe, a device, a folder.

    An `opener` of `open`, too.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(EINVAL, "no plain file", str(path))
    os.set_blocking(descriptor, True)
    return descriptor


def read_regular(path: str | Path) -> str:
    """Return a file of people's own as text; OSError, or UnicodeDecodeError."""
    with open(path, encoding="utf-8", opener=regular) as file:
        return file.read()
