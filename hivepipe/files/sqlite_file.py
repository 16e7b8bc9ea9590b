"""Create the file of a SQLite database, and close its connection after an error."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def make_private_file(path: str | os.PathLike[str]) -> None:
    """Create the file with mode 0600, which SQLite also gives to its -wal and -shm files.

    An existing file is not opened. POSIX drops the locks of all connections of a process to a file
    when it closes the file once, and another process could then delete the -wal in use.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close the connection if the block fails, because then no object owns it."""
    try:
        yield
    except BaseException:
        connection.close()
        raise
