"""Opening what lies in a worker's folder, where it may put anything.

A pipe would block whoever reads it, a link would let us write into somebody else's file.
"""

import os
from collections.abc import Iterator
from errno import EFBIG
from gzip import GzipFile
from pathlib import Path
from typing import IO

from hivepipe.regular_file import regular

_LONGEST_LINE = 64 << 20
_LATEST_NS = 1 << 62  # in 2116: the store's numbers end in 2262, and dates in 9999


def plain(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a file, new ones 0600; OSError also for a link, a pipe, a folder.

    An `opener` of `open`, too.
    """
    return regular(path, flags | os.O_NOFOLLOW)


def lines_in(file: IO[bytes] | GzipFile, path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file; OSError: one is longer than any that Claude Code writes."""
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise OSError(EFBIG, "a line is longer than 64 MB", str(path))
        yield line


def changed_ns(file: int | Path) -> int:
    """Return when a file was changed, 0 where there is none; its owner may say any time."""
    try:
        return min(max(os.stat(file).st_mtime_ns, 1), _LATEST_NS)
    except OSError:
        return 0


def read_end(path: Path, limit: int) -> str:
    """Return the end of a file as text; empty where there is none that can be read."""
    try:
        with open(path, "rb", opener=plain) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - limit, 0))
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
