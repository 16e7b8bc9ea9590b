"""Command `team audit`: who read sessions of others."""

import click

from hivepipe.cli.parameters import given
from hivepipe.cli.tables import limit_option, output_options, show_entries
from hivepipe.cli.team.administrators import admin_option, administrator
from hivepipe.reading.team.audit import READS, newest_reads, read_of
from hivepipe.reading.team.source import opened

_COLUMNS = {
    "time": "at",
    "reader": "reader",
    "of": "owner",
    "session": "session_id",
    "what": "what",
}


@click.command()
@click.option(
    "--all", "of_all", is_flag=True, help="List the reads of all members, as administrator."
)
@limit_option(100, "Maximum number of reads, newest first.")
@admin_option
@output_options
def audit(of_all: bool, limit: int) -> None:
    """List who read your sessions on the team's server.

    An entry with `*` instead of a session stands for a list with titles, or for a search.
    """
    if of_all or given("admin"):
        with administrator() as connection:
            rows = connection.execute(READS, {"limit": limit}).fetchall()
        reads = [read_of(row) for row in rows]
    else:
        with opened() as source:
            reads = newest_reads(source, limit)
    show_entries("reads", reads, _COLUMNS, without="nobody read a session of yours")
