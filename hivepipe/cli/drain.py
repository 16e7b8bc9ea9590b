"""Command `drain`: store the spooled events in the database without Redis."""

import sqlite3
import sys

import click

from hivepipe import direct
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import say
from hivepipe.errors import StoreError
from hivepipe.files.file_size import with_limit
from hivepipe.home import locate
from hivepipe.team import final_send
from hivepipe.text.plurals import counted


@click.command()
@click.option("--uplink", is_flag=True, help="Then send all rows and archives to the team.")
@click.option(
    "--within",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=30.0,
    help="Seconds that sending rows may take; 30 by default.",
)
@json_option
def drain(uplink: bool, within: float) -> None:
    """Store the events that wait on disk in the database, without Redis.

    Exits with 1 if an event could not be stored, or with --uplink if rows were not sent. Run it as
    the last step of a CI job. Without a joined team, --uplink uses HIVEPIPE_TEAM.
    """
    home = locate(".").home
    try:
        report = direct.drain(home)
    except sqlite3.Error as error:
        reason = with_limit(str(error))
        raise StoreError(f"the database of {home} cannot be written: {reason}") from error
    sent = final_send.send(home, within) if uplink else None
    failed, set_aside = (
        [{"file": str(path), "reason": reason} for path, reason in found.items()]
        for found in (report.failed, report.set_aside)
    )
    if not show_json(
        applied=report.applied,
        failed=failed,
        set_aside=set_aside,
        operations_failed=report.operations_failed,
        sent=sent._asdict() if sent else None,
    ):
        _show(report)
        if sent:
            waiting = f", {sent.waiting} still wait" if sent.waiting else ""
            archives = f", {counted(sent.segments, 'segment')} of archives" if sent.segments else ""
            say(f"{counted(sent.rows, 'row')} sent to {sent.server}{waiting}{archives}")
    sys.exit(1 if report.failed or report.set_aside or (sent and sent.waiting) else 0)


def _show(report: direct.Report) -> None:
    say(f"{counted(report.applied, 'event')} applied")
    for reason in report.operations_failed:
        say(f"an installed operation failed: {reason}", err=True)
    for path, reason in report.failed.items():
        say(f"kept in the spool: {path.name}: {reason}", err=True)
    for path, reason in report.set_aside.items():
        say(f"unreadable, moved to {path.parent}/bad: {path.name}: {reason}", err=True)
