"""The operation that imports one row of a predecessor."""

from typing import Any

from hivepipe.db import legacy_rows
from hivepipe.db.database import Database
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin


class ImportRow(Args, handler="families.imports.import_row", priority=8, without_session=True):
    """A row of one of the predecessor's tables."""

    table: str
    row: dict[str, Any]


def import_row(db: Database, job: Origin, args: ImportRow) -> None:
    """Import one row. Raise MissingParentError if its parent is missing."""
    legacy_rows.import_row(db, args.table, args.row, job.id)
