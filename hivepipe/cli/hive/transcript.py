"""Command `hive transcript`: the steps of a worker, from its transcript."""

import gzip
import zlib
from collections.abc import Iterator

import click

from hivepipe.cli.hive.here import here_hive
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import say
from hivepipe.errors import HiveError
from hivepipe.orchestrator import retire
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.plain_file import lines_in, open_regular
from hivepipe.orchestrator.stream import lines_of, steps


@click.command()
@click.argument("start", metavar="ID")
@click.option("--calls", is_flag=True, help="Show only the tool calls.")
@json_option
def transcript(start: str, calls: bool) -> None:
    """Show the messages and tool calls of a worker, redacted.

    The worker may be archived.
    """
    all_steps = steps(_lines(here_hive(), start))
    found = [step for step in all_steps if not calls or step.kind == "calls"]
    if show_json(steps=[step._asdict() for step in found]):
        return
    for step in found:
        say(f"{step.kind:<7} {step.words}")


def _lines(hive: Hive, start: str) -> Iterator[bytes]:
    """Yield the lines of a worker's transcript, which may be compressed."""
    try:
        worker = hive.worker(start)
    except HiveError:
        archived = [worker for worker in hive.archived() if worker.matches(start)]
        if not start or len(archived) != 1:
            raise
        (worker,) = archived
    path = worker.folder / retire.PACKED
    if worker.transcript.exists() or not path.exists():
        yield from lines_of(worker.transcript)
        return
    try:
        with open(path, "rb", opener=open_regular) as packed, gzip.open(packed) as lines:
            yield from lines_in(lines, path)
    except (OSError, EOFError, zlib.error) as error:
        raise HiveError(f"{path} cannot be read: {error}") from None
