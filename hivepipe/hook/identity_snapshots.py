"""Copies of a profile's identity files.

A copy is taken at each change, so that no version is missed even if the worker is late.

    <home>/identity/<event time>_<pid>_<name>    0600; read by sync_identity, removed later

Hooks import this module after an edit of a profile's own file.
"""

import posix

from hivepipe import sender
from hivepipe.home import open_or_make

MOST_BYTES = 1 << 18


def keep(home: str, path: str, time_ns: int) -> str:
    """Copy an identity file; return the copy's name, or "" on failure.

    A file that is too large, or not a regular file, is not copied.
    """
    data = read_regular(path)
    if data is None:
        return ""
    name = _name(path, time_ns)
    # A worker copies files of several profiles for one event.
    while not sender.is_gone() and posix.access(f"{home}/identity/{name}", posix.F_OK):
        time_ns += 1
        name = _name(path, time_ns)
    try:
        descriptor = open_or_make(f"{home}/identity/{name}", posix.O_WRONLY | posix.O_TRUNC)
        try:
            whole = posix.write(descriptor, data) == len(data)
        finally:
            posix.close(descriptor)
    except OSError:
        return ""
    return name if whole else ""


def _name(path: str, time_ns: int) -> str:
    return f"{time_ns:020d}_{sender.pid()}_{path.rpartition('/')[2]}"


def read_regular(path: str) -> bytes | None:
    """Return the bytes of a regular file of at most 256 kB, or None. Links are not followed."""
    flags = posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK
    try:
        descriptor = posix.open(path, flags)
    except (OSError, ValueError):
        return None
    try:
        status = posix.fstat(descriptor)
        if status.st_mode & 0o170000 != 0o100000 or status.st_size > MOST_BYTES:
            return None
        return posix.read(descriptor, MOST_BYTES)
    except OSError:
        return None
    finally:
        posix.close(descriptor)
