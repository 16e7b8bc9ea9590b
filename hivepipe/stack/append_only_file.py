"""Repair of Redis' append-only file after a full disk.

Redis 7 and later, and Valkey, do not use O_APPEND for the file that follows a rewrite. When the
disk is full, the server cuts off a command that was written only in part. But its next write begins
where that part ended. So the file gets a gap of zeros, and no server loads the file. The server
does not add the gap to its count of bytes. So when the disk is full again, the server cuts off too
much, and loses the end of earlier commands.
"""

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hivepipe.files.regular_file import ANY_SIZE, read_bytes, regular
from hivepipe.stack.redis_server import folders_aside

_ARGUMENTS = re.compile(rb"\*(\d{1,9})\r\n").match
_LENGTH = re.compile(rb"\$(\d{1,9})\r\n").match
_END = b"\r\n"
_END_OF_GAP = re.compile(rb"\0(?=\*\d)")
_MULTI, _EXEC = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"


def close_gaps(home: str) -> None:
    """Remove gaps of zeros from the append-only files of a stopped Redis.

    A file that cannot be read or written is skipped.
    """
    folders = (Path(home, "appendonlydir"), *folders_aside(home))
    for path in (path for folder in folders for path in folder.glob("*.incr.aof")):
        with suppress(OSError):
            if _may_have_gap(path) and (parts := [*_parts(read_bytes(path, ANY_SIZE))])[1:]:
                _replace(path, Path(home, f"temp-{os.getpid()}.aof"), b"".join(parts))


def _may_have_gap(path: Path) -> bool:
    """Tell whether a command follows a zero byte. The file is mapped, because it may be large."""
    with open(path, "rb", buffering=0, opener=regular) as file:
        if not os.fstat(file.fileno()).st_size:  # an empty file cannot be mapped
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return bool(_END_OF_GAP.search(data))


def _parts(data: bytes) -> Iterator[bytes]:
    """Yield the data around the gaps of zeros, without the torn command before each gap."""
    start = at = 0
    while at < len(data):
        if not (end := _end_of_transaction(data, at)):
            if not (end := _end_of_gap(data, at)):  # a torn command: it is left to Redis
                break
            yield data[start:at]
            start = end
        at = end
    yield data[start:]


def _end_of_gap(data: bytes, at: int) -> int:
    """Return the end of the gap that begins at `at`, or 0 if there is none.

    A torn command at `at` is treated as part of the gap that follows this command.
    """
    for found in _END_OF_GAP.finditer(data, at):
        end = found.end()
        is_gap = not data[at:end].strip(b"\0")
        if is_gap or (data[at] in b"\0*" and _end_of_transaction(data, end)):
            return end
    return 0


def _end_of_transaction(data: bytes, at: int) -> int:
    """Return the end of the command or whole transaction that begins at `at`, or 0."""
    end = _end_of_command(data, at)
    if data[at:end] == _MULTI:
        while end and data[at:end] != _EXEC:
            at, end = end, _end_of_command(data, end)
    return end


def _end_of_command(data: bytes, at: int) -> int:
    """Return the end of the command that begins at `at`, or 0 if no command begins there."""
    if not (arguments := _ARGUMENTS(data, at)):
        return 0
    at = arguments.end()
    for _ in range(int(arguments[1])):
        if not (length := _LENGTH(data, at)):
            return 0
        at = length.end() + int(length[1]) + len(_END)
        if data[at - len(_END) : at] != _END:
            return 0
    return at


def _replace(path: Path, temporary: Path, data: bytes) -> None:
    """Replace a file by writing `temporary`, which the next start of Redis deletes after a kill."""
    try:
        with open(temporary, "wb", opener=regular) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:  # the disk may still be full
        temporary.unlink(missing_ok=True)
        raise
