"""Import the predecessor's file queue and database. The import is idempotent.

Entries of the queue are converted to rows first. Each row has an id derived from its content.
"""

import json
import sqlite3
from _blake2 import blake2b
from collections.abc import Callable, Iterable, Iterator
from math import inf
from pathlib import Path
from typing import NamedTuple

from hivepipe.db.applied import is_imported, mark_imported
from hivepipe.db.database import Database, opened_file
from hivepipe.db.legacy_database import LegacyDatabase
from hivepipe.db.legacy_rows import TIMES, import_row, in_utc, is_local, known_rows
from hivepipe.db.legacy_sql import LegacySql, RefusedError, Touched
from hivepipe.errors import JobError, StoreError
from hivepipe.migration.legacy_queue import Entry, entries

TAKEN, BEFORE, DOUBLE = "taken", "here already", "double"
REFUSED, BROKEN, NOTHING = "refused", "broken", "no such row"


class Outcome(NamedTuple):
    """The result of importing one entry of the queue or one row of a database."""

    name: str
    kind: str  # operation or table
    outcome: str
    reason: str = ""


class Imported(NamedTuple):
    """The results of importing one source of entries or rows."""

    outcomes: list[Outcome]
    local_times: int  # times without a zone, which were read as local times

    @property
    def is_whole(self) -> bool:
        """Tell whether everything was imported, in this run or before."""
        return all(each.outcome in (TAKEN, BEFORE) for each in self.outcomes)


def import_into(
    path: Path, take: Callable[["Importer"], Iterable[Outcome]], *, is_dry: bool
) -> Imported:
    """Import a source into this database in one transaction; return the results.

    A dry run changes nothing. Raise StoreError if the database cannot be used.
    """
    if is_dry and not path.exists():
        importer = Importer(None, is_dry=True)
        return Imported(list(take(importer)), importer.local_times)
    with opened_file(path) as db, db.transaction():
        importer = Importer(db, is_dry=is_dry)
        return Imported(list(take(importer)), importer.local_times)


class Importer:
    """Imports rows within the caller's transaction, or counts them in a dry run."""

    def __init__(self, db: Database | None, *, is_dry: bool) -> None:
        """Prepare an import. `db` is None in a dry run without a database."""
        self._db = db
        self._is_dry = is_dry
        self.local_times = 0

    def queue(self, folder: Path, parts: tuple[str, ...]) -> Iterator[Outcome]:
        """Import entries of the queue and yield the results.

        Each SQL statement of an entry runs on a copy of the tables in memory. The rows that it
        changed are imported.
        """
        sandbox = LegacySql(known_rows(self._db) if self._db else {})
        effects: dict[str, set[Touched]] = {}
        seen: set[str] = set()
        try:
            for entry in entries(folder, parts):
                id = _hash(["entry", entry.sql, entry.created_at])
                outcome = self._judged(sandbox, entry, id, seen)
                if outcome.outcome == TAKEN:
                    effects[id] = sandbox.take_touched()
                yield outcome
            refused: set[Touched] = set()
            for key, row in sandbox.rows():
                brought = self._row(key[0], row)
                if brought.outcome == REFUSED:  # the other outcomes were reported as entries
                    refused.add(key)
                    yield brought
            self._remember(id for id, touched in effects.items() if not touched & refused)
        finally:
            sandbox.close()

    def _judged(self, sandbox: LegacySql, entry: Entry, id: str, seen: set[str]) -> Outcome:
        name = f"{entry.path.parent.name}/{entry.path.name}"
        if entry.problem:
            return Outcome(name, entry.operation, BROKEN, entry.problem)
        if id in seen:
            return Outcome(name, entry.operation, DOUBLE)
        seen.add(id)
        if self._db and is_imported(self._db, id):
            return Outcome(name, entry.operation, BEFORE)
        try:
            touched = sandbox.run(entry.sql, entry.created_at)
        except RefusedError as error:
            return Outcome(name, entry.operation, REFUSED, str(error))
        return Outcome(name, entry.operation, TAKEN if touched else NOTHING)

    def _remember(self, entries: Iterable[str]) -> None:
        """Store that these entries of the queue were imported as a whole, unless in a dry run.

        The next run tries the other entries again.
        """
        for id in entries:
            if self._db and not self._is_dry:
                mark_imported(self._db, id)

    def database(self, legacy: LegacyDatabase) -> Iterator[Outcome]:
        """Import the rows of a database. An error in one table does not affect the other tables."""
        for table in legacy.tables:
            try:
                for row in legacy.rows(table):
                    yield self._row(table, row)
            except StoreError as error:
                yield Outcome(f"table {table}", table, REFUSED, str(error))

    def _row(self, table: str, row: dict[str, object]) -> Outcome:
        if endless := [name for name, value in row.items() if value in (inf, -inf)]:
            reason = f"{', '.join(endless)}: infinite, which JSON cannot represent"
            return Outcome(str(row["id"]), table, REFUSED, reason)
        self.local_times += sum(is_local(row.get(name)) for name in TIMES)
        outcome, reason = self._bring(table, in_utc(row))
        return Outcome(str(row["id"]), table, outcome, reason)

    def _bring(self, table: str, row: dict[str, object]) -> tuple[str, str]:
        id = _hash([table, row])
        if self._db and is_imported(self._db, id):
            return BEFORE, ""
        if self._is_dry or self._db is None:
            return TAKEN, ""
        try:
            with self._db.savepoint():
                import_row(self._db, table, row, id)
                mark_imported(self._db, id)
        except (JobError, sqlite3.IntegrityError) as error:  # a savepoint protects the other rows
            return REFUSED, str(error)
        return TAKEN, ""


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return blake2b(text.encode(), digest_size=16, person=b"hivepipe-import").hexdigest()
