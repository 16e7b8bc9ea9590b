"""Command `hive log`: what a worker did, out of its transcript."""

import gzip
from collections.abc import Iterator

import click

from hivepipe.cli.hive.here import here_hive
from hivepipe.cli.tables import json_option, printable, show_json
from hivepipe.errors import HiveError
from hivepipe.hive.folder import Hive
from hivepipe.hive.plain_file import plain
from hivepipe.hive.stream import Step, Stream, steps
from hivepipe.hive.worker import Worker


@click.command()
@click.argument("start", metavar="ID")
@click.option("--calls", is_flag=True, help="Show the tool calls alone.")
@json_option
def log(start: str, calls: bool, as_json: bool) -> None:
    """Show what a worker said, called and was told, archived or not; secrets are taken out."""
    hive = here_hive()
    found = [step for step in _steps(hive, start) if not calls or step.kind == "calls"]
    if as_json:
        show_json(steps=[step._asdict() for step in found])
        return
    for step in found:
        click.echo(f"{step.kind:<7} {printable(step.words)}")


def _steps(hive: Hive, start: str) -> Iterator[Step]:
    try:
        worker = hive.worker(start)
    except HiveError:
        archived = [worker for worker in hive.archived() if worker.is_called(start)]
        if not start or len(archived) != 1:
            raise
        yield from _of_archived(archived[0])
        return
    yield from steps(worker.transcript, Stream())


def _of_archived(worker: Worker) -> Iterator[Step]:
    stream = Stream()
    path = worker.folder / "transcript.jsonl.gz"
    if not path.exists():  # somebody moved it here
        yield from steps(worker.transcript, stream)
    else:
        with open(path, "rb", opener=plain) as packed, gzip.open(packed) as lines:
            for raw in lines:
                yield from stream.feed(raw)
