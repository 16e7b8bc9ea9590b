"""Read regular files only, because a pipe or a device could block the reader.

Every read of a whole file uses this module. The file must be regular, and have at most `MOST_BYTES`
unless the caller sets another limit.
"""

import os
import stat
from collections.abc import Iterator
from errno import EFBIG, EINVAL, ENXIO
from io import RawIOBase
from pathlib import Path

MOST_BYTES = 64 << 20  # settings, keys and notes are much smaller
ANY_SIZE = 1 << 40  # for our own files, and those that must be read to the end
BYTE_ORDER_MARK = "\ufeff"  # some editors begin a file with it, and no parser here accepts it
_PORTION = 1 << 20


class SpecialFileError(OSError):
    """The file is a pipe, a device, a socket or a folder."""


def regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file. The function can be the `opener` of `open`.

    A new file gets mode 0600. Raises OSError also for a pipe, a device or a folder.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    refuse_special(descriptor, path)
    os.set_blocking(descriptor, True)
    return descriptor


def refuse_special(descriptor: int, path: str | Path) -> None:
    """Raise SpecialFileError and close `descriptor` if it does not refer to a regular file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SpecialFileError(EINVAL, "no plain file", str(path))


def is_open_as(descriptor: int, path: str) -> bool:
    """Tell whether `path` still names the file that is open as `descriptor`."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def read_bytes(path: str | Path, limit: int = MOST_BYTES) -> bytes:
    """Return a regular file's bytes. Raises OSError if it is missing or larger than `limit`."""
    with open(path, "rb", buffering=0, opener=regular) as file:
        return whole(file, path, limit)


def read_text(path: str | Path, errors: str = "strict", limit: int = MOST_BYTES) -> str:
    """Return a regular UTF-8 file as text with normalised newlines and without a byte order mark.

    Raises OSError or UnicodeDecodeError.
    """
    text = read_bytes(path, limit).decode("utf-8", errors).removeprefix(BYTE_ORDER_MARK)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_given(path: str | Path, limit: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file named on the command line, which may be a pipe of the shell.

    Raises OSError if it is missing or larger than `limit`.
    """
    with open(path, "rb", buffering=0) as file:
        return whole(file, path, limit)


def whole(file: RawIOBase, path: str | Path, limit: int) -> bytes:
    """Return the rest of a file. Raises OSError if the file is larger than `limit`.

    The file is read in chunks, because a single read would allocate `limit` bytes.
    """
    if os.fstat(file.fileno()).st_size > limit:
        raise _too_large(path, limit)
    found = bytearray()
    while part := file.read(min(_PORTION, limit + 1 - len(found))):
        found += part
        if len(found) > limit:
            raise _too_large(path, limit)
    return bytes(found)


def chunks(file: RawIOBase) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of a file's data in chunks; holes of a sparse file are skipped."""
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
