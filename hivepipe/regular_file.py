"""Reading what should be a file: a pipe or a device in its place would keep the reader for ever.

Every read of a whole file goes through here: it is a regular one, and no larger than `MOST_BYTES`.
"""

import os
import stat
from collections.abc import Iterator
from errno import EFBIG, EINVAL, ENXIO
from io import RawIOBase
from pathlib import Path

MOST_BYTES = 64 << 20  # of settings, keys, notes: none comes near
ANY_SIZE = 1 << 40  # what is our own, or has to be read to its end
_PORTION = 1 << 20


class SpecialFileError(OSError):
    """It is a pipe, a device, a socket or a folder."""


def regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a file, new ones 0600; OSError also for a pipe, a device, a folder.

    An `opener` of `open`, too.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    refuse_special(descriptor, path)
    os.set_blocking(descriptor, True)
    return descriptor


def refuse_special(descriptor: int, path: str | Path) -> None:
    """Close what is open and no regular file, with an OSError."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SpecialFileError(EINVAL, "no plain file", str(path))


def read_bytes(path: str | Path, limit: int = MOST_BYTES) -> bytes:
    """Return a regular file; OSError: there is none, or it is larger than the limit."""
    with open(path, "rb", buffering=0, opener=regular) as file:
        return whole(file, path, limit)


def read_text(
    path: str | Path, encoding: str = "utf-8", errors: str = "strict", limit: int = MOST_BYTES
) -> str:
    """Return a regular file as text, a newline ending each line; OSError, UnicodeDecodeError."""
    text = read_bytes(path, limit).decode(encoding, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_given(path: str | Path, limit: int = MOST_BYTES) -> bytes:
    """Return what the user named on the command line, which may be a pipe of the shell's."""
    with open(path, "rb", buffering=0) as file:
        return whole(file, path, limit)


def whole(file: RawIOBase, path: str | Path, limit: int) -> bytes:
    """Return the rest of a file, in portions: one read would ask for the memory of the limit."""
    if os.fstat(file.fileno()).st_size > limit:
        raise _too_large(path, limit)
    found = bytearray()
    while part := file.read(min(_PORTION, limit + 1 - len(found))):
        found += part
        if len(found) > limit:
            raise _too_large(path, limit)
    return bytes(found)


def portions(file: RawIOBase) -> Iterator[tuple[int, bytes]]:
    """Yield where a file has data, and the data, in portions.

    Holes are passed over: a file of terabytes without data takes no time.
    """
    at, descriptor = 0, file.fileno()
    while True:
        try:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != ENXIO:
                raise
            return
        data = os.pread(descriptor, _PORTION, at)
        yield at, data
        at += len(data)


def _too_large(path: str | Path, limit: int) -> OSError:
    size = f"{limit >> 20} MB" if limit >> 20 else f"{limit >> 10} kB"
    return OSError(EFBIG, f"larger than {size}", str(path))
