"""Run the predecessor's SQL statements in memory, one at a time, under an authorizer.

The changed rows are imported. The statements themselves never reach the store.
"""

import sqlite3
from collections.abc import Iterable, Mapping

from hivepipe.db.legacy_rows import TABLES, utc_time
from hivepipe.errors import StoreError
from hivepipe.files.sqlite_file import open_in_memory

STEPS = 2_000_000  # most steps of SQLite's virtual machine; an entry takes a few hundred
_EVERY = 10_000
_FIRST_WORDS = ("INSERT", "UPDATE", "DELETE", "REPLACE")
_FUNCTIONS = ("json_set", "json_object", "datetime", "coalesce")
_READABLE = (*TABLES, "sqlite_master", "sqlite_schema")
_CHANGED_ROWS = "changed_rows"

_ACTIONS = {
    sqlite3.SQLITE_INSERT: "INSERT into",
    sqlite3.SQLITE_UPDATE: "UPDATE of",
    sqlite3.SQLITE_DELETE: "DELETE from",
}


Touched = tuple[str, int]  # a table, and the number of one of its rows


class RefusedError(StoreError):
    """The statement must not be imported."""


class LegacySql:
    """An in-memory copy of the known tables. It records which rows were inserted or changed."""

    def __init__(self, known: Mapping[str, Iterable[Mapping[str, object]]]) -> None:
        """Copy `known` (table -> rows of the store), because statements may refer to these rows."""
        self._db = open_in_memory()
        self._db.row_factory = sqlite3.Row
        self._db.execute(
            f"CREATE TABLE {_CHANGED_ROWS} (name TEXT, number INTEGER, UNIQUE (name, number))"
        )
        for table, columns in TABLES.items():
            self._make(table, columns)
            for row in known.get(table, ()):
                self._copy(table, {name: row[name] for name in columns if name in row.keys()})  # noqa: SIM118
        self._db.execute(f"DELETE FROM {_CHANGED_ROWS}")
        self._reason = ""
        self._now = ""
        self._touched: set[Touched] = set()
        self._db.create_function("datetime", -1, self._datetime)

    def _make(self, table: str, columns: tuple[str, ...]) -> None:
        key = "id INTEGER PRIMARY KEY" if table == "session_logs" else "id TEXT PRIMARY KEY"
        rest = ", ".join(name for name in columns if name != "id")
        self._db.execute(f"CREATE TABLE {table} ({key}, {rest})")
        for event in ("INSERT", "UPDATE"):
            self._db.execute(
                f"CREATE TRIGGER note_{event}_{table} AFTER {event} ON {table} BEGIN "
                f"INSERT OR IGNORE INTO {_CHANGED_ROWS} VALUES ('{table}', new.rowid); END"
            )

    def _copy(self, table: str, row: Mapping[str, object]) -> None:
        marks = ", ".join(f":{name}" for name in row)
        self._db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", dict(row))

    def run(self, sql: str, created_at: str) -> int:
        """Run one statement with `created_at` as its time; return the number of changed rows.

        Raise RefusedError if the statement must not be imported.
        """
        word = sql.split(None, 1)[0].upper() if sql.strip() else ""
        if word.startswith("."):
            raise RefusedError(f"{word.lower()} is a command of the sqlite3 shell")
        if word not in _FIRST_WORDS:
            raise RefusedError(f"{word[:20]} is not INSERT, UPDATE or DELETE")
        self._reason, self._now = "", utc_time(created_at)
        steps = [STEPS // _EVERY]

        def count() -> int:
            steps[0] -= 1
            return steps[0] < 0

        self._db.set_authorizer(self._authorize)
        self._db.set_progress_handler(count, _EVERY)
        try:
            self._db.execute("SAVEPOINT entry")
            touched = self._db.execute(sql).rowcount
            self._db.execute("RELEASE entry")
            return touched
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            self._undo()
            raise RefusedError(self._error_text(error, steps[0])) from error
        finally:
            self._db.set_authorizer(None)
            self._db.set_progress_handler(None, 0)

    def _undo(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK TO entry")
            self._db.execute("RELEASE entry")

    def _error_text(self, error: Exception, steps: int) -> str:
        if self._reason:
            return f"{self._reason} is not allowed"
        if steps < 0:
            return "it takes too long"
        if "one statement at a time" in str(error):
            return "more than one statement"
        return str(error)

    def take_touched(self) -> set[Touched]:
        """Return the rows that were inserted or changed since the last call."""
        found = {
            (row[0], row[1])
            for row in self._db.execute(f"SELECT name, number FROM {_CHANGED_ROWS}")
        }
        self._db.execute(f"DELETE FROM {_CHANGED_ROWS}")
        self._touched |= found
        return found

    def rows(self) -> Iterable[tuple[Touched, dict[str, object]]]:
        """Yield the rows that statements inserted or changed and did not delete, parents first."""
        self.take_touched()
        for table in TABLES:
            for key in sorted(key for key in self._touched if key[0] == table):
                sql = f"SELECT * FROM {table} WHERE rowid = :number"
                for row in self._db.execute(sql, {"number": key[1]}):
                    yield key, dict(row)

    def close(self) -> None:
        self._db.close()

    # ---- the permissions of a statement

    def _authorize(
        self, action: int, first: str | None, second: str | None, _base: str | None, by: str | None
    ) -> int:
        """Allow only the SQL actions that the predecessor's own statements need."""
        if by and by.startswith("note_"):  # our own trigger did this
            return sqlite3.SQLITE_OK
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_SAVEPOINT):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ and first in _READABLE:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS:
            return sqlite3.SQLITE_OK
        if action in _ACTIONS and first in TABLES:
            return sqlite3.SQLITE_OK
        self._reason = self._reason or _described(action, first, second)
        return sqlite3.SQLITE_DENY

    def _datetime(self, *words: object) -> str:
        if words != ("now",) and words != ("now", "localtime"):
            raise ValueError("datetime is supported for 'now' only")
        return self._now


def _described(action: int, first: str | None, second: str | None) -> str:
    if action == sqlite3.SQLITE_FUNCTION:
        return f"the function {second}"
    if action == sqlite3.SQLITE_READ:
        return f"reading {first}"
    if action in _ACTIONS:
        return f"{_ACTIONS[action]} {first}"
    return f"action {action} ({first})"
