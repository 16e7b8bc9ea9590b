"""The database of the predecessor, read as what it is: somebody else's file."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hivepipe.errors import StoreError
from hivepipe.store.legacy_rows import TABLES

_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)


class LegacyDatabase:
    """Both shapes that were seen, and any other: what columns it shares with ours are read."""

    def __init__(self, path: Path) -> None:
        """Open it for reading; StoreError: it is no database, or cannot be read."""
        if not path.is_file():
            raise StoreError(f"{path} is no file")
        try:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            self._db.text_factory = lambda data: data.decode("utf-8", "replace")
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._columns = {table: self._shared(table) for table in TABLES}
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {path}: {error}") from error
        self._db.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
        )

    def _shared(self, table: str) -> tuple[str, ...]:
        """Return the columns to read; none of a view or a virtual table, which run code."""
        sql = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table"
        found = self._db.execute(sql, {"table": table}).fetchone()
        if found is None or "VIRTUAL" in found[0].upper().split("(")[0]:
            return ()
        info = self._db.execute("SELECT name FROM pragma_table_info(:table)", {"table": table})
        names = {row[0] for row in info}
        return tuple(name for name in TABLES[table] if name in names)

    @property
    def left_out(self) -> list[str]:
        """The tables that are not there, or not as tables."""
        return [table for table, columns in self._columns.items() if "id" not in columns]

    def rows(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield the rows, parents first; StoreError: the file is damaged."""
        for table, columns in self._columns.items():
            if "id" not in columns:
                continue
            try:
                for row in self._db.execute(f"SELECT {', '.join(columns)} FROM {table}"):
                    texts = (
                        v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in row
                    )
                    yield table, dict(zip(columns, texts, strict=True))
            except sqlite3.Error as error:
                raise StoreError(f"table {table} cannot be read: {error}") from error

    def close(self) -> None:
        """Let go of it."""
        self._db.close()
