"""Detect changes of a file without reading it."""

import os

Stamp = tuple[int, ...]


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Return a value that differs after every change of the file, or () without a file."""
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return ()


def stamps_of_database(path: str | os.PathLike[str]) -> tuple[Stamp, Stamp]:
    """Return the stamps of an SQLite database and of its write-ahead log."""
    return stamp(path), stamp(f"{path}-wal")


def stamp_of(status: os.stat_result | None) -> Stamp:
    return (status.st_ino, status.st_size, status.st_mtime_ns) if status else ()
