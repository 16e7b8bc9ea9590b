"""Detect changes of a file without reading it."""

import os

Stamp = tuple[int, ...]


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Return a value that differs after every change of the file, or () without a file."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)
