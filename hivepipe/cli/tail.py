"""Command `tail`: events as they are taken, with what was kept of each."""

import time

import click

from hivepipe.cli.tables import json_lines_option, moment, printable, show_json, utc_option
from hivepipe.cli.terminal import say
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.tail import Line, Tail
from hivepipe.errors import StoreError
from hivepipe.home import locate

EVERY_SECS = 0.5
_SHOWN = 160  # characters of one event


@click.command()
@click.option("--session", "session_id", default="", metavar="ID", help="Of one session alone.")
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many older ones come first.",
)
@click.option("--once", is_flag=True, help="Show the older ones and end.")
@json_lines_option
@utc_option
def tail(session_id: str, lines: int, once: bool, as_json: bool, utc: bool) -> None:
    """Show events as they are taken, with what was kept of each, until Ctrl-C."""
    path = database_path(locate(".").home)
    if session_id:
        with listings(path) as store:
            session_id = store.full_id("session", session_id)
    watched = Tail(session_id, lines)
    try:
        with listings(path) as store:
            found = watched.look(store)
        _show(found[-lines:] if lines else [], as_json, utc)
        while not once:
            time.sleep(EVERY_SECS)
            try:  # nothing is kept open between two looks
                with listings(path) as store:
                    _show(watched.look(store), as_json, utc)
            except StoreError:  # it is busy, or being restored
                continue
    except KeyboardInterrupt:
        return


def _show(lines: list[Line], as_json: bool, utc: bool) -> None:
    for line in lines:
        if as_json:
            show_json(**line._asdict())
            continue
        what = printable(" ".join(line.what.split()))[:_SHOWN]
        at = moment(line.created_at, utc)
        say(f"{at}  {line.session_id[:8]:<8}  {line.kind:<7}  {what}")
