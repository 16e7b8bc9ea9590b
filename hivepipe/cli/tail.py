"""Command `tail`: events as they are recorded."""

import time

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.tables import json_lines_option, printable, show_json, shown_time, utc_option
from hivepipe.cli.terminal import say
from hivepipe.db.tail import Line, Tail
from hivepipe.errors import StoreError
from hivepipe.home import locate
from hivepipe.reading.session_lookup import session_in

EVERY_SECS = 0.5
_SHOWN = 160  # characters of one event


@click.command()
@click.option("--session", "session_id", default="", metavar="ID", help="Only this session.")
@click.option(
    "--lines",
    metavar="N",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of earlier events to show first.",
)
@click.option("--once", is_flag=True, help="Show earlier events and exit.")
@json_lines_option
@utc_option
def tail(session_id: str, lines: int, once: bool) -> None:
    """Show events as they are recorded, until Ctrl-C."""
    if session_id:
        with store_here() as store:
            session_id = session_in(locate(".").home, store, session_id)
    watched = Tail(session_id, lines)
    try:
        with store_here() as store:
            found = watched.poll(store)
        _show(found[-lines:] if lines else [])
        while not once:
            time.sleep(EVERY_SECS)
            try:  # reopened each time: a long-lived reader would hold back WAL checkpoints
                with store_here() as store:
                    _show(watched.poll(store))
            except StoreError:  # the database is busy, or being restored
                continue
    except KeyboardInterrupt:
        return


def _show(lines: list[Line]) -> None:
    for line in lines:
        if show_json(**line._asdict()):
            continue
        what = printable(" ".join(line.what.split()))[:_SHOWN]
        at = shown_time(line.created_at)
        say(f"{at}  {line.session_id[:8]:<8}  {line.kind:<7}  {what}")
