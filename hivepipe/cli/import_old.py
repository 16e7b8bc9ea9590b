"""Commands `import-queue` and `import-db`: import the data of hivepipe's predecessor."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import click

from hivepipe.cli.tables import as_json, json_option, printable, show_json, show_table
from hivepipe.cli.terminal import say, say_prose, short
from hivepipe.db.database import opened
from hivepipe.db.legacy_database import LeftOut, LegacyDatabase
from hivepipe.db.location import database_path
from hivepipe.errors import MigrationError, StoreError
from hivepipe.home import locate
from hivepipe.migration.importing import BEFORE, TAKEN, Imported, Importer, Outcome, import_into
from hivepipe.migration.legacy_queue import count
from hivepipe.text.plurals import counted

_PARTS = {
    "completed": "done by the old worker",
    "processing": "may have run already; --include-processing imports them",
    "failed": "failed in the old worker; --include-failed imports them",
    ".tmp": "never queued, because the hook was killed",
}

_WHOLE = (
    "this is a database of hivepipe. To replace the data here by a copy of it, run `hivepipe "
    "backup` in its project and `hivepipe restore --replace` here. To use it where it is, run "
    "`hivepipe init --adopt` in its project"
)

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be imported.")


@click.command("import-queue")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@dry_run_option
@click.option("--include-processing", is_flag=True, help="Also import jobs that may have run.")
@click.option("--include-failed", is_flag=True, help="Also import jobs that failed.")
@json_option
def import_queue(
    folder: str, dry_run: bool, include_processing: bool, include_failed: bool
) -> None:
    """Import the waiting jobs of an old file queue: the folder that holds `pending`.

    Only single INSERT, UPDATE and DELETE statements on known tables are accepted; others are
    listed. Exits with 1 if a job was not imported.
    """
    queue = Path(folder)
    if not any((queue / part).is_dir() for part in ("pending", *_PARTS)):
        raise MigrationError(
            f"{folder} is not an old queue: name the folder that contains `pending`"
        )
    parts = ["pending"]
    parts += ["processing"] if include_processing else []
    parts += ["failed"] if include_failed else []
    left_out = [
        LeftOut(part, count(queue, part), _PARTS[part]) for part in _PARTS if part not in parts
    ]
    imported = _import(lambda importer: importer.queue(queue, tuple(parts)), dry_run)
    _show(imported, left_out, dry_run)
    sys.exit(0 if imported.is_whole else 1)


@click.command("import-db")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@dry_run_option
@json_option
def import_db(file: str, dry_run: bool) -> None:
    """Import the rows of an old hive.db: swarms, sessions, agents, instances, logs, tasks.

    Exits with 1 if a row was not imported, or a table could not be read.
    """
    own = database_path(locate(".").home)
    if own.exists() and os.path.samefile(file, own):
        raise StoreError(f"{file} is this home's own database; for an old one: `hivepipe migrate`")
    with closing(LegacyDatabase(Path(file))) as legacy:
        if not legacy.has_tables:
            raise MigrationError(f"{file} is not an old hive.db: it has no tables")
        imported = _import(lambda importer: importer.database(legacy), dry_run)
        left_out = legacy.left_out()
    _show(imported, left_out, dry_run)
    if legacy.is_of_hivepipe and not as_json():
        say_prose(_WHOLE, 2)
    has_lost = any(each.rows != 0 and each.name.startswith("table ") for each in left_out)
    sys.exit(0 if imported.is_whole and not has_lost else 1)


def _import(take: Callable[[Importer], Iterable[Outcome]], is_dry: bool) -> Imported:
    home = locate(".").home
    if not is_dry:
        with opened(home):
            pass  # opening creates a missing database
    return import_into(database_path(home), take, is_dry=is_dry)


def _show(imported: Imported, left_out: list[LeftOut], is_dry: bool) -> None:
    totals = Counter(each.outcome for each in imported.outcomes)
    database = database_path(locate(".").home)
    if show_json(
        dry_run=is_dry,
        database=str(database),
        totals=dict(totals),
        left_out=[each._asdict() for each in left_out],
        local_times=imported.local_times,
        entries=[each._asdict() for each in imported.outcomes],
    ):
        return
    show_unimported(imported, left_out)
    counts = ", ".join(f"{number} {name}" for name, number in sorted(totals.items()))
    would_be = "would be: " if is_dry else ""
    say(f"{would_be}{counts or 'nothing to import'}; into {short(str(database))}")


def show_unimported(imported: Imported, left_out: list[LeftOut]) -> None:
    """Show each entry, row and table that was not imported, and why."""
    not_taken = [each for each in imported.outcomes if each.outcome not in (TAKEN, BEFORE)]
    if not_taken:
        rows = [tuple(map(printable, each)) for each in not_taken]
        show_table(("entry", "what", "outcome", "why"), rows)
    for each in left_out:
        if each.rows != 0:
            number = "" if each.rows is None else f" ({each.rows})"
            say_prose(f"not imported: {each.name}{number}: {each.reason}", 2)
    if imported.local_times:
        zone = time.strftime("%Z")
        times = counted(imported.local_times, "time")
        say(f"{times} without a zone: read as local ({zone}), stored in UTC")
