"""Command `disk`: what takes how much room, and away with what is over its time."""

import os

import click

from hivepipe.cli.tables import json_option, show_json, show_table, size
from hivepipe.errors import HivepipeError
from hivepipe.handlers.prune_files import Dropped, drop_outdated
from hivepipe.handlers.slow import asked, at_once
from hivepipe.home import locate
from hivepipe.retention_limits import limits_of
from hivepipe.stores import stores


@click.command()
@click.option("--prune", is_flag=True, help="First delete what is over its time.")
@json_option
def disk(prune: bool, as_json: bool) -> None:
    """Show the size of every store, and how long things are kept."""
    place = locate(".")
    limits = limits_of(place.home)
    dropped = _prune(place.home) if prune and os.path.isdir(place.home) else None
    found = stores(place)
    total = sum(store.size_bytes for store in found)
    if as_json:
        show_json(
            stores={store.name: store.size_bytes for store in found},
            total=total,
            retention=limits._asdict(),
            dropped=dropped._asdict() if dropped else None,
        )
        return
    rows = [(store.name, size(store.size_bytes), store.keeps) for store in found]
    show_table(("store", "size", "keeps"), [*rows, ("total", size(total), "")])
    click.echo(
        f"kept: archives {limits.archives:g} days, logs {limits.logs:g}, events on disk "
        f"{limits.spool:g} or {limits.spool_mb:g} MB, archived workers {limits.workers:g}"
    )
    if dropped:
        click.echo(
            f"deleted: {dropped.archives} archives, {dropped.logs} logs, {dropped.events} events, "
            f"{dropped.workers} archived workers"
        )


def _prune(home: str) -> Dropped:
    os.umask(0o077)
    try:
        with at_once(home) as workplace:
            return drop_outdated(workplace, asked("prune_files"))
    except OSError as error:
        raise HivepipeError(f"not all that is over its time is deleted: {error}") from error
