"""Read the predecessor's database as untrusted input."""

import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hivepipe.db.legacy_rows import OTHER_NAMES, TABLES
from hivepipe.errors import StoreError
from hivepipe.files.regular_file import chunks, regular
from hivepipe.files.sqlite_file import closing_on_error

_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
_ATTEMPTS = 5
_OF_SQLITE = re.compile(r"sqlite_\w+")
_REASONS = {
    "collective_memory": "hivepipe keeps memories as files, not as rows",
    "consensus_decisions": "hivepipe has no votes",
    "session_checkpoints": "hivepipe keeps the last checkpoint of a session, in `sessions`",
    "schema_migrations": "it is hivepipe's own",
}
_UNKNOWN = "hivepipe has no such table"
_OWN = "only the tables of the bash hooks are imported from a database of hivepipe"
_NO_TABLE = "it is not an ordinary table: reading it could run code"
_NO_ID = "it has no column `id`"


class LeftOut(NamedTuple):
    """A table, or columns of a table, that cannot be imported."""

    name: str
    rows: int | None  # None if not counted
    reason: str


class LegacyDatabase:
    """A copy of a database with any schema, of which only hivepipe's columns are read."""

    def __init__(self, path: Path) -> None:
        """Copy and open the database. Raise StoreError if it cannot be read as a database."""
        self._copies = tempfile.TemporaryDirectory(prefix="hivepipe-")
        try:
            self._db = sqlite3.connect(_copied(path, Path(self._copies.name)))
            with closing_on_error(self._db):
                self._read_schema()
        except BaseException as error:
            self._copies.cleanup()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot read {path}: {error}") from error
            raise

    def _read_schema(self) -> None:
        self._db.text_factory = lambda data: data.decode("utf-8", "replace")
        self._db.execute("PRAGMA trusted_schema = OFF")
        self._tables = self._find_tables()
        named = {name.lower(): columns for name, columns in self._tables.items()}
        self._columns = {table: _source_columns(table, named.get(table, [])) for table in TABLES}
        self._db.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
        )

    def _find_tables(self) -> dict[str, list[str]]:
        """Return table or view -> its columns, or [] if reading the table could run code."""
        sql = "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"
        found: dict[str, list[str]] = {}
        for name, kind, text in self._db.execute(sql).fetchall():
            is_plain = kind == "table" and "VIRTUAL" not in str(text).upper().split("(")[0]
            info = "SELECT name FROM pragma_table_info(:table)"
            rows = self._db.execute(info, {"table": name}) if is_plain else ()
            found[name] = [row[0] for row in rows]
        return found

    @property
    def is_of_hivepipe(self) -> bool:
        return "schema_migrations" in self._tables

    @property
    def has_tables(self) -> bool:
        return bool(self._tables)

    def left_out(self) -> list[LeftOut]:
        """Return the tables and columns that cannot be imported, each with the reason."""
        return [*self._tables_left_out(), *self._columns_left_out()]

    def _tables_left_out(self) -> Iterator[LeftOut]:
        for table, columns in sorted(self._tables.items()):
            name = table.lower()
            if _OF_SQLITE.fullmatch(name) or "id" in self._columns.get(name, {}):
                continue
            rows = self._count(table) if columns else None
            if self.is_of_hivepipe and not columns:  # a view, which has no rows of its own
                continue
            unknown = _OWN if self.is_of_hivepipe else _UNKNOWN
            reason = _NO_ID if name in TABLES else _REASONS.get(name, unknown)
            yield LeftOut(f"table {table}", rows, reason if columns else _NO_TABLE)

    def _columns_left_out(self) -> Iterator[LeftOut]:
        for table, columns in sorted(self._tables.items()):
            taken = self._columns.get(table.lower(), {})
            others = [name for name in columns if name not in taken.values()]
            if "id" in taken and others:
                names = ", ".join(others)
                whose = "the bash hooks did" if self.is_of_hivepipe else "hivepipe does"
                reason = f"{whose} not have these columns: {names}"
                yield LeftOut(f"columns of {table}", self._count(table), reason)

    def _count(self, table: str) -> int | None:
        try:
            name = table.replace('"', '""')
            (number,) = self._db.execute(f'SELECT count(*) FROM "{name}"').fetchone()
        except sqlite3.Error:
            return None
        return int(number)

    @property
    def tables(self) -> list[str]:
        """Return the tables that can be imported, parents first."""
        return [table for table, columns in self._columns.items() if "id" in columns]

    def rows(self, table: str) -> Iterator[dict[str, object]]:
        """Yield the rows of a table. Raise StoreError if the table is damaged."""
        columns = self._columns[table]
        sources = ", ".join(f'"{name}"' for name in columns.values())
        try:
            for row in self._db.execute(f"SELECT {sources} FROM {table}"):
                texts = (v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in row)
                yield dict(zip(columns, texts, strict=True))
        except sqlite3.Error as error:
            raise StoreError(f"it cannot be read: {error}") from error

    def close(self) -> None:
        """Close the database and delete the copy."""
        self._db.close()
        self._copies.cleanup()


def _copied(path: Path, folder: Path) -> Path:
    """Copy a database with its -wal and -journal, which opening the original would change.

    Raise StoreError if the database cannot be read, or if another process keeps writing it.
    """
    if path.is_symlink() or not path.is_file():
        raise StoreError(f"{path} is not a regular file")
    try:
        for _ in range(_ATTEMPTS):
            for copy in folder.iterdir():  # a log of the last attempt does not fit the new copy
                copy.unlink()
            before = _states(path)
            for suffix in before:
                _copy(f"{path}{suffix}", folder / f"hive.db{suffix}")
            if _states(path) == before:
                return folder / "hive.db"
    except OSError as error:
        raise StoreError(f"{error.filename or path} cannot be read: {error.strerror}") from error
    raise StoreError(f"{path} changes all the time: end the program that writes it")


def _copy(source: str, target: Path) -> None:
    """Copy a file and keep its holes, so that a sparse file does not fill the disk."""
    with open(source, "rb", buffering=0, opener=_no_link) as file, target.open("wb") as copy:
        for at, data in chunks(file):
            copy.seek(at)
            copy.write(data)
        copy.truncate(os.fstat(file.fileno()).st_size)


def _no_link(path: str, flags: int) -> int:
    return regular(path, flags | os.O_NOFOLLOW)


def _states(path: Path) -> dict[str, tuple[int, int, int]]:
    """Return size, time and inode of the database, its -wal and its -journal."""
    found = {}
    for suffix in ("", "-wal", "-journal"):
        if not suffix or os.path.lexists(f"{path}{suffix}"):
            status = os.lstat(f"{path}{suffix}")
            found[suffix] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found


def _source_columns(table: str, there: list[str]) -> dict[str, str]:
    """Return hivepipe's column -> the matching column of the old table. Case is ignored."""
    known = {name.lower(): name for name in there}
    found = {}
    for name in TABLES[table]:
        names = (name, *OTHER_NAMES.get((table, name), ()))
        source = next((known[each] for each in names if each in known), None)
        if source:
            found[name] = source
    return found
