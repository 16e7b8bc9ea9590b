"""Repair of Redis' append-only file after a full disk.

Redis 7 and later, and Valkey, do not open the file that follows a rewrite with O_APPEND. When the
disk is full, they cut off a command that was written in part. But the next write begins where that
part had ended, so the file has a gap of zeros. No command is missing, but no server loads the file.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hivepipe.files.regular_file import ANY_SIZE, read_bytes, regular

_ARGUMENTS = re.compile(rb"\*(\d{1,9})\r\n").match
_LENGTH = re.compile(rb"\$(\d{1,9})\r\n").match
_END = b"\r\n"
_ZEROS = re.compile(rb"\0+").match


def close_gaps(home: str) -> None:
    """Remove the gaps from the files of a Redis that does not run. An unwritable file stays."""
    for path in Path(home, "appendonlydir").glob("*.incr.aof"):
        with suppress(OSError):
            data = read_bytes(path, ANY_SIZE)
            if b"\0*" in data and (parts := [*_parts(data)])[1:]:
                _replace(path, Path(home, f"temp-{os.getpid()}.aof"), b"".join(parts))


def _parts(data: bytes) -> Iterator[bytes]:
    """Yield what is between the gaps; a gap is where a command could begin."""
    start = at = 0
    while at < len(data):
        if zeros := _ZEROS(data, at):
            yield data[start:at]
            start = at = zeros.end()
        elif not (at := _end_of_command(data, at)):  # a torn command: Redis decides
            break
    yield data[start:]


def _end_of_command(data: bytes, at: int) -> int:
    """Return where the command ends that begins at `at`, or 0 if none does."""
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
    """Replace a file; Redis' start deletes `temporary` if this process is killed."""
    with open(temporary, "wb", opener=regular) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
