"""Open files in a worker's folder safely.

A worker can create any kind of file in its folder. A pipe would block the reader, and a symbolic
link would redirect a write to another file.
"""

import os
from collections.abc import Iterator
from errno import EFBIG
from gzip import GzipFile
from pathlib import Path
from typing import IO

from hivepipe.files.regular_file import regular

_LONGEST_LINE = 64 << 20
_LATEST_NS = 1 << 62  # year 2116; the integers of the store end in 2262, dates in 9999


def open_regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file, with mode 0600 if it is new.

    Raise OSError for a symbolic link, a pipe or a folder, too. The function can be the `opener` of
    `open`.
    """
    return regular(path, flags | os.O_NOFOLLOW)


def lines_in(file: IO[bytes] | GzipFile, path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file. Raise OSError if a line is longer than 64 MB."""
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise OSError(EFBIG, "a line is longer than 64 MB", str(path))
        yield line


def changed_ns(file: int | Path) -> int:
    """Return the modification time in ns, within the storable range, or 0 if there is no file."""
    try:
        return min(max(os.stat(file).st_mtime_ns, 1), _LATEST_NS)
    except OSError:
        return 0


def read_end(path: Path, limit: int) -> str:
    """Return the last `limit` bytes of a file as text, or "" if it cannot be read."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - limit, 0))
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
