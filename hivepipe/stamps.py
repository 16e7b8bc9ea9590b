"""What tells that a file has changed, without reading it."""

import os

Stamp = tuple[int, ...]


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Return what changes whenever a file does; empty: there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)
