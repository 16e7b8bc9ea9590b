"""SQLite connections: open, write and maintain the database.

The database uses WAL with `synchronous=FULL`, so that a commit survives a power cut. Several
processes may write (the writer, the direct path, a stock `rq worker`). With BEGIN IMMEDIATE and the
table `applied`, each job takes effect once.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

from hivepipe.db.location import database_path
from hivepipe.db.migrations import WORDS, migrate
from hivepipe.db.tree import prepare, refuse_tracked
from hivepipe.errors import StoreError, TreeError, os_error_as
from hivepipe.files.sqlite_file import open_to_write, transaction
from hivepipe.redact.fields import redact_column

LONGEST_SECS = 0.01  # longest transaction of `write_shortly`
Row = sqlite3.Row

# Tables whose rows are looked up by `name`; in other tables `name` is a text like any other
_NAMED = {"slots", "alerts", "counters", "identity_versions", "identity_baselines"}

BUSY_TIMEOUT_SECS = 5.0
# For workers, which try again later: they must not wait for a lock while they have other jobs.
SHORT_TIMEOUT_SECS = 0.1
PAGES_AT_ONCE = 2000  # 8 MB


class Database:
    """An open database that redacts all written texts; for keys, only built-in rules apply."""

    def __init__(
        self, path: Path, busy_timeout_secs: float = BUSY_TIMEOUT_SECS, number: int = 0
    ) -> None:
        """Open the database, and create or migrate it if needed.

        Raise StoreError or sqlite3.Error on failure.

        A new database stores `number`, the random number of its home (hivepipe.db.tree), in its
        first page. So if another process deletes the file at this moment, no file without the
        number is created.
        """
        self.path = path
        refuse_tracked(path)
        try:
            _make_folder(path.parent)
            self._connection = open_to_write(path, busy_timeout_secs)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot open {path}: {error}") from error
        self._connection.row_factory = sqlite3.Row
        try:
            self._enter_wal(busy_timeout_secs, number)
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute("PRAGMA foreign_keys=ON")
            migrate(self._connection, path.parent / "backups")
            self._file = _file_at(path)
        except BaseException as error:
            self._connection.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN:
                # SQLite gives no reason; a failed attempt to create a file does.
                with os_error_as(StoreError, f"cannot write in {path.parent}"):
                    TemporaryFile(dir=path.parent).close()
            raise

    def _enter_wal(self, wait_secs: float, number: int) -> None:
        """Switch to WAL; retry, because SQLite does not wait for another process that does so."""
        deadline = time.monotonic() + wait_secs
        while True:
            try:
                (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
                if not pages:  # later the pragma takes a lock, and has no effect before a VACUUM
                    # Without this pragma the file never shrinks.
                    self._connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
                    if number:
                        self._connection.execute(f"PRAGMA application_id = {number:d}")
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def execute(self, sql: str, parameters: Mapping[str, object]) -> int:
        """Execute a write with every text redacted; return the number of changed rows."""
        return self._connection.execute(sql, _redacted(parameters)).rowcount

    def insert(
        self,
        table: str,
        row: Mapping[str, object],
        on_conflict: str = "DO NOTHING",
        **more: object,
    ) -> bool:
        """Insert a row, with every text redacted; return whether a row was written.

        `on_conflict` is SQL for an existing row, and `more` has its parameters.
        """
        columns = _redacted(row, "key" if table in _NAMED else "name")
        names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
        sql = f"INSERT INTO {table} ({names}) VALUES ({values}) ON CONFLICT {on_conflict}"
        return self._connection.execute(sql, {**columns, **_redacted(more)}).rowcount == 1

    def row(self, sql: str, parameters: Mapping[str, object]) -> Row | None:
        found: Row | None = self._connection.execute(sql, parameters).fetchone()
        return found

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
        return self._connection.execute(sql, parameters or {}).fetchall()

    def each(self, sql: str) -> Iterator[Row]:
        """Yield the rows of a large query. The caller must not write meanwhile."""
        yield from self._connection.execute(sql)

    def version(self) -> tuple[int, int]:
        """Return a value that changes whenever any process changes the database."""
        row = self.row("PRAGMA data_version", {})
        return (int(row[0]) if row else 0), self._connection.total_changes

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in one transaction; the write lock is taken at its start.

        Raise sqlite3.OperationalError also if the file was removed or replaced during the block,
        because no other process could read the committed data.
        """
        with transaction(self._connection):
            yield
        if _file_at(self.path) != self._file:
            raise sqlite3.OperationalError("the database file was removed or replaced")
        # A removed log is never checkpointed: another process may have begun a new one, and a mix
        # of the pages of both logs would damage the database.

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Run one job within a transaction. If it fails, only its own changes are rolled back."""
        self._connection.execute("SAVEPOINT job")
        try:
            yield
        except BaseException:
            # If no transaction is open, SQLite has rolled it back.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO job")
                self._connection.execute("RELEASE job")
            raise
        self._connection.execute("RELEASE job")

    def try_to_write(self) -> None:
        """Commit an unchanged page; raise sqlite3.Error if the database cannot be written."""
        (number,) = self._connection.execute("PRAGMA user_version").fetchone()
        with self.transaction():
            self._connection.execute(f"PRAGMA user_version = {number:d}")

    def log_bytes(self) -> int:
        log = Path(f"{self.path}-wal")
        return log.stat().st_size if log.exists() else 0

    def shrink(self) -> None:
        """Free empty pages of the file and truncate the write-ahead log.

        While another process reads or writes, raise sqlite3.Error or do nothing.
        """
        # `execute` would run only the first of many steps.
        self._connection.executescript(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")
        self.truncate_log()

    def truncate_log(self) -> bool:
        """Move the write-ahead log into the file; return False if the log is in use."""
        row = self.row("PRAGMA wal_checkpoint(TRUNCATE)", {})
        return row is not None and not row[0]

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def opened_file(path: Path) -> Iterator[Database]:
    """Open a database and close it after the block. Raise StoreError if SQLite fails."""
    try:
        with Database(path, BUSY_TIMEOUT_SECS) as db:
            yield db
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be used: {error}") from error


def new_values(columns: Iterable[str]) -> str:
    """Return SQL for an upsert: set these columns of an existing row to the new values."""
    return ", ".join(f"{name} = excluded.{name}" for name in columns)


def _redacted(parameters: Mapping[str, object], a_name: str = "name") -> dict[str, object]:
    """Return the parameters with texts redacted, except the schema's own words, such as 'active'.

    A text is redacted by the rules of its column; `a_name` is the column of the parameter `name`.
    """
    return {
        name: redact_column(a_name if name == "name" else name, value)
        if isinstance(value, str) and value not in WORDS
        else value
        for name, value in parameters.items()
    }


def _make_folder(folder: Path) -> None:
    """Make the database's folder and its parents, if they are missing.

    Raise StoreError if the folder is the current one and was deleted: processes of a stack run in
    its home, and end soon after a user has deleted it.
    """
    with suppress(OSError):  # there is no /proc
        if os.readlink("/proc/self/cwd") == f"{folder} (deleted)":
            raise StoreError(f"{folder} was deleted")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file with this name, or None."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def open_database(home: str, busy_timeout_secs: float = BUSY_TIMEOUT_SECS) -> Database:
    """Open a home's database, and create or migrate it if needed.

    Raise StoreError or sqlite3.Error if it cannot be used, and StoreError if git may have replaced
    it (hivepipe.db.tree).
    """
    try:
        number = prepare(home)
    except (OSError, TreeError) as error:
        raise StoreError(str(error)) from error
    return Database(database_path(home), busy_timeout_secs, number)


@contextmanager
def opened(home: str) -> Iterator[Database]:
    """Open a home's database and close it after the block. Raise StoreError if SQLite fails."""
    try:
        with open_database(home) as db:
            yield db
    except sqlite3.Error as error:
        raise StoreError(f"{database_path(home)} cannot be used: {error}") from error


def write_shortly(db: Database, writes: Iterable[Callable[[], None]]) -> None:
    """Call the writes in order. A transaction has as many writes as fit into LONGEST_SECS.

    Each write is executed before the next one is taken from the iterable. After each transaction
    the lock stays free for as long as it was held, because SQLite has no queue for waiting
    processes. After an error, the earlier transactions stay committed.
    """
    left = iter(writes)
    write = next(left, None)
    while write is not None:
        with db.transaction():
            began = time.monotonic()
            while write is not None and time.monotonic() - began < LONGEST_SECS:
                write()
                write = next(left, None)
        if write is not None:
            time.sleep(time.monotonic() - began)
