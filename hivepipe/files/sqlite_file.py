"""SQLite connections: opening to write, transactions, and closing after an error."""

import _locale
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TWO_LETTERS_I = ("tr", "az", "ku", "crh", "tt")  # locales where I is not the capital of i


def open_to_write(path: str | os.PathLike[str], timeout_secs: float) -> sqlite3.Connection:
    """Open or create a database in autocommit mode. Raise OSError or sqlite3.Error."""
    _make_private_file(path)
    refuse_special_file(path)
    _use_plain_letters()
    return sqlite3.connect(path, timeout=timeout_secs, isolation_level=None)


def refuse_special_file(path: str | os.PathLike[str]) -> None:
    """Raise sqlite3.OperationalError for a pipe or a folder.

    Of a pipe SQLite reports "disk I/O error", or it waits until another process opens the pipe.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        error = sqlite3.OperationalError("no plain file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN  # like SQLite's own error
        raise error


def open_in_memory() -> sqlite3.Connection:
    _use_plain_letters()
    return sqlite3.connect(":memory:", isolation_level=None)


def _use_plain_letters() -> None:
    """Set this process's LC_CTYPE to C.UTF-8 if its locale breaks Python's sqlite3.

    sqlite3 recognises INSERT by a comparison that depends on the locale. With a Turkish locale the
    comparison fails, and sqlite3 counts no rows.
    """
    if not _locale.setlocale(_locale.LC_CTYPE, None).startswith(_TWO_LETTERS_I):
        return
    try:
        _locale.setlocale(_locale.LC_CTYPE, "C.UTF-8")
    except _locale.Error:  # type: ignore[attr-defined]  # a system without this locale
        _locale.setlocale(_locale.LC_CTYPE, "C")


def _make_private_file(path: str | os.PathLike[str]) -> None:
    """Create the file with mode 0600, which SQLite also gives to its -wal and -shm files.

    An existing file is not opened. When a process closes a file, POSIX drops all locks of the
    process on that file. Another process could then delete the -wal in use.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction that takes the write lock first. Errors roll it back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk, SQLite has rolled back already
            connection.execute("ROLLBACK")
        raise


def statements(script: str) -> Iterator[str]:
    """Split a script into statements, because `executescript` would commit the transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


@contextmanager
def closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close a new connection if the block fails. In that case no object owns the connection."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def trouble_of_index(path: str | os.PathLike[str], error: OSError | sqlite3.Error) -> str:
    """Return why an index cannot be used, and a hint to delete it if it is damaged."""
    # Neither a lock nor a full or read-only disk caused the error
    is_broken = not isinstance(error, OSError | sqlite3.OperationalError)
    hint = "; delete it to rebuild it" if is_broken else ""
    reason = error.strerror if isinstance(error, OSError) else ""
    return f"cannot use {path}: {reason or error}{hint}"
