"""Commands `import-queue` and `import-db`: what the predecessor left, and what became of each."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click

from hivepipe.cli.tables import json_option, printable, show_json, show_table
from hivepipe.errors import StoreError
from hivepipe.home import locate
from hivepipe.importing import BEFORE, TAKEN, Importer, Outcome
from hivepipe.legacy_queue import count
from hivepipe.store.database import opened
from hivepipe.store.legacy_database import LegacyDatabase
from hivepipe.store.location import database_path

dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be; change nothing.")


@click.command("import-queue")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@dry_run_option
@click.option("--include-processing", is_flag=True, help="Also what may have run already.")
@click.option("--include-failed", is_flag=True, help="Also what the old queue gave up.")
@json_option
def import_queue(
    folder: str, dry_run: bool, include_processing: bool, include_failed: bool, as_json: bool
) -> None:
    """Take in what waits in an old file queue: the folder with `pending` in it.

    Only single INSERT, UPDATE and DELETE on the known tables; whatever else is refused by name.
    """
    queue = Path(folder)
    parts = ["pending"]
    parts += ["processing"] if include_processing else []
    parts += ["failed"] if include_failed else []
    skipped = {
        part: count(queue, part)
        for part in ("completed", "processing", "failed", ".tmp")
        if part not in parts
    }
    _import(lambda importer: importer.queue(queue, tuple(parts)), dry_run, as_json, skipped)


@click.command("import-db")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@dry_run_option
@json_option
def import_db(file: str, dry_run: bool, as_json: bool) -> None:
    """Take in the rows of an old hive.db: swarms, sessions, agents, instances, logs."""
    own = database_path(locate(".").home)
    if own.exists() and os.path.samefile(file, own):
        raise StoreError(f"{file} is this home's own database: each log line would be there twice")
    with closing(LegacyDatabase(Path(file))) as legacy:
        left_out = dict.fromkeys((f"table {name}" for name in legacy.left_out), 0)
        _import(lambda importer: importer.rows(legacy.rows()), dry_run, as_json, left_out)


def _import(
    take: Callable[[Importer], Iterator[Outcome]],
    is_dry: bool,
    as_json: bool,
    skipped: dict[str, int],
) -> None:
    os.umask(0o077)
    path = database_path(locate(".").home)
    if is_dry and not path.exists():
        importer = Importer(None, time.time_ns(), is_dry=True)
        outcomes = list(take(importer))
    else:
        with opened(path) as db, db.transaction():
            importer = Importer(db, time.time_ns(), is_dry=is_dry)
            outcomes = list(take(importer))
    _show(outcomes, importer.local_times, is_dry, as_json, skipped)
    sys.exit(0 if all(each.outcome in (TAKEN, BEFORE) for each in outcomes) else 1)


def _show(
    outcomes: list[Outcome], local_times: int, is_dry: bool, as_json: bool, skipped: dict[str, int]
) -> None:
    totals = Counter(each.outcome for each in outcomes)
    if as_json:
        show_json(
            dry_run=is_dry,
            totals=dict(totals),
            skipped=skipped,
            local_times=local_times,
            entries=[each._asdict() for each in outcomes],
        )
        return
    told = [each for each in outcomes if each.outcome not in (TAKEN, BEFORE)]
    if told:
        rows = [tuple(map(printable, each)) for each in told]
        show_table(("entry", "what", "outcome", "why"), rows)
    said = ", ".join(f"{number} {name}" for name, number in sorted(totals.items()))
    click.echo(f"{'would be: ' if is_dry else ''}{said or 'nothing to import'}")
    for part, number in skipped.items():
        click.echo(f"left where it is: {part}" + (f", {number} files" if number else ""))
    if local_times:
        zone = time.strftime("%Z")
        click.echo(f"{local_times} times had no zone: taken as local ones ({zone}), kept in UTC")
