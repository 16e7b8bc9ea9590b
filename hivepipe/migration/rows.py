"""Import the rows of old homes into the database. A dry run imports into a copy."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from hivepipe.db.copies import copy_to
from hivepipe.db.foreign import is_own
from hivepipe.db.legacy_database import LeftOut, LegacyDatabase
from hivepipe.errors import StoreError
from hivepipe.migration.home import QUEUE_PARTS, OldHome
from hivepipe.migration.importing import Imported, Importer, Outcome, import_into


class ImportResult(NamedTuple):
    imported: Imported
    left_out: list[LeftOut]

    @property
    def is_read(self) -> bool:
        """Tell whether every database and each of its known tables could be read."""
        is_of_table = [each.name == f"table {each.kind}" for each in self.imported.outcomes]
        return not any(is_of_table) and all(each.name != "database" for each in self.left_out)


NOTHING = ImportResult(Imported([], 0), [])


def import_homes(database: Path, homes: list[OldHome]) -> ImportResult:
    """Import the databases of old homes, then their queues, in one transaction.

    Return the results, and the files that were left out.
    """
    left_out: list[LeftOut] = []

    def take(importer: Importer) -> Iterator[Outcome]:
        left_out.clear()
        for home in homes:
            yield from _rows(importer, home, left_out)
            left_out.extend(home.left_out())
        for home in homes:
            if home.queue:
                yield from importer.queue(home.queue, QUEUE_PARTS)

    return ImportResult(import_into(database, take, is_dry=False), left_out)


def rehearse(database: Path, homes: list[OldHome]) -> ImportResult:
    """Import into a temporary copy of the database; return the result. May raise StoreError."""
    with tempfile.TemporaryDirectory(prefix="hivepipe-") as folder:
        copy = Path(folder, "hive.db")
        if is_own(database):
            copy_to(database, copy)
        return import_homes(copy, homes)


def _rows(importer: Importer, home: OldHome, left_out: list[LeftOut]) -> Iterator[Outcome]:
    if not home.database:
        return
    try:
        with closing(LegacyDatabase(home.database)) as legacy:
            yield from importer.database(legacy)
            left_out.extend(legacy.left_out())
    except StoreError as error:
        name = "link" if home.database.is_symlink() else "database"
        left_out.append(LeftOut(name, None, str(error)))
