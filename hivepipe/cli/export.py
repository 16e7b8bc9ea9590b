"""Command `export`: all rows and the metadata of all archives as JSON lines."""

from collections.abc import Iterator
from typing import Any

import click

from hivepipe.cli.terminal import document, say_json
from hivepipe.db.export import exported_rows
from hivepipe.db.location import database_path
from hivepipe.errors import NothingRecordedError
from hivepipe.home import kept_folder, locate
from hivepipe.operations.archive import archives_of
from hivepipe.reading.session_lookup import session_named


@click.command()
@click.option(
    "--jsonl", "as_jsonl", is_flag=True, help="Print one JSON object per line (required)."
)
@click.option("--session", metavar="ID", help="Only this session; ID may be a prefix.")
def export(as_jsonl: bool, session: str | None) -> None:
    """Print every row of every table and the metadata of every archive, times in UTC."""
    if not as_jsonl:
        raise click.UsageError("--jsonl is required")
    home = locate(".").home
    with document():
        for line in _lines(home, "" if session is None else session_named(home, session)):
            say_json({"schema": 1, **line}, at_once=False)


def _lines(home: str, session: str) -> Iterator[dict[str, Any]]:
    archives, database = archives_of(home), database_path(home)
    entries = archives.index.entries()
    if not entries and not database.exists():
        raise NothingRecordedError(database)
    for table, row in exported_rows(database, session):
        yield {"table": table, "row": row}
    for entry in entries.values():
        if session in ("", entry["session_id"]):
            path = f"{kept_folder(home)}/{entry['path']}"
            yield {"archive": {**entry, "path": path}, "meta": archives.meta_of(entry)}
