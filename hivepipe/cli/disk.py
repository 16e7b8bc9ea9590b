"""Command `disk`: size and retention of each kind of data; deletes expired data."""

import os
from dataclasses import asdict
from typing import Any

import click

from hivepipe.cli.parameters import CheckedCommand
from hivepipe.cli.tables import Column, output_options, show_entries, show_json, show_table
from hivepipe.cli.terminal import say, say_prose, short
from hivepipe.errors import HivepipeError
from hivepipe.files.deletion_log import deletions
from hivepipe.home import locate
from hivepipe.maintenance.disk_usage import disk_usage
from hivepipe.operations.prune_files import Pruned, drop_outdated
from hivepipe.operations.slow import at_once, manual_origin
from hivepipe.text.plurals import counted
from hivepipe.text.sizes import size

_OF_LOG: dict[str, Column] = {
    "time": "at",
    "kind": "kind",
    "age": lambda each: f"{each['age_days']:g} days",
    "rule": "rule",
    "what": lambda each: (
        f"{each['number']} of {each['path']}" if each["kind"] == "rows" else short(each["path"])
    ),
}


def _check(*, prune: bool, with_log: bool, **_: Any) -> None:
    if prune and with_log:
        raise click.UsageError("--prune and --log exclude each other")


@click.command(cls=CheckedCommand, check=_check)
@click.option("--prune", is_flag=True, help="Delete expired data first.")
@click.option(
    "--log", "with_log", is_flag=True, help="Show what retention deleted, and by which rule."
)
@output_options
def disk(prune: bool, with_log: bool) -> None:
    """Show the size and the retention of each kind of data."""
    place = locate(".")
    if with_log:
        found = [asdict(each) for each in deletions(place.home)]
        show_entries("deletions", found, _OF_LOG, without="nothing was deleted by retention")
        return
    dropped = _prune(place.home) if prune and os.path.isdir(place.home) else None
    usage = disk_usage(place)
    if show_json(**usage.entry(), dropped=dropped._asdict() if dropped else None):
        return
    rows = [(store.name, size(store.size_bytes), store.keeps) for store in usage.stores]
    show_table(("store", "size", "keeps"), [*rows, ("total", size(usage.total), "")])
    say_prose(f"kept: {usage.kept}", 6)
    if dropped:
        say(
            f"deleted: {counted(dropped.archives, 'archive')}, {counted(dropped.logs, 'log')}, "
            f"{counted(dropped.events, 'event')}, {counted(dropped.workers, 'archived worker')}"
        )


def _prune(home: str) -> Pruned:
    try:
        with at_once(home) as context:
            return drop_outdated(context, manual_origin("prune_files"))
    except OSError as error:
        raise HivepipeError(f"some expired data could not be deleted: {error}") from error
