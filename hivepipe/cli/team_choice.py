"""Options of commands that can read the team's server instead of this machine."""

import click

from hivepipe.cli.parameters import given, shared_option, together
from hivepipe.cli.terminal import say
from hivepipe.db.listings import Entry
from hivepipe.reading.team.source import Choice

COLUMNS = {"person": "person", "machine": "machine"}

team_options = together(
    shared_option("--team", is_flag=True, help="Read what the team shares, from its server."),
    shared_option("--person", metavar="NAME", help="With --team: only this member."),
    shared_option("--machine", metavar="NAME", help="With --team: only this machine."),
)


def team_choice(*, since: str = "", until: str = "") -> Choice | None:
    """Return which of the team's rows to read, or None for this machine's. May raise UsageError."""
    whose = {name: given(name) for name in ("person", "machine") if given(name)}
    if whose and not given("team"):
        raise click.UsageError(f"--{next(iter(whose))} needs --team")
    return Choice(since=since, until=until, **whose) if given("team") else None


def first_entries(found: list[Entry], most: int) -> list[Entry]:
    """Return the first `most` entries of a team's list, and print a note if it has more."""
    if len(found) > most:
        say(f"only the newest {most:,} are shown: --person and --machine show fewer", err=True)
    return found[:most]
