"""Command `export`: all that is kept, a line each."""

from collections.abc import Iterator
from typing import Any

import click

from hivepipe.cli.terminal import say_json, until_enough
from hivepipe.db.export import exported_rows
from hivepipe.db.location import database_path
from hivepipe.home import kept_folder, locate
from hivepipe.operations.archive import archives_of
from hivepipe.reading.choosing import session_named


@click.command()
@click.option("--jsonl", "as_jsonl", is_flag=True, help="One JSON object per line.")
@click.option(
    "--session",
    metavar="ID",
    help="Only what is of this session; the beginning of its id is enough.",
)
def export(as_jsonl: bool, session: str | None) -> None:
    """Print every row of every table and the metadata of every archive; times in UTC."""
    if not as_jsonl:
        raise click.UsageError("say the form: --jsonl")
    home = locate(".").home
    with until_enough():
        for line in _lines(home, "" if session is None else session_named(home, session)):
            say_json({"schema": 1, **line}, at_once=False)


def _lines(home: str, session: str) -> Iterator[dict[str, Any]]:
    for table, row in exported_rows(database_path(home), session):
        yield {"table": table, "row": row}
    archives = archives_of(home)
    for entry in archives.index.entries().values():
        if session in ("", entry["session_id"]):
            path = f"{kept_folder(home)}/{entry['path']}"
            yield {"archive": {**entry, "path": path}, "meta": archives.meta_of(entry)}
