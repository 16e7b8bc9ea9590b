"""Options of commands that can read the team's server instead of this machine."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hivepipe.cli.terminal import say
from hivepipe.db.listings import Entry
from hivepipe.reading.team.source import Choice

_Command = TypeVar("_Command", bound=Callable[..., Any])
COLUMNS = {"person": "person", "machine": "machine"}


def team_options(command: _Command) -> _Command:
    """Add --team, --person and --machine: the command takes `of_team`, `person`, `machine`."""
    of_machine = click.option(
        "--machine", metavar="NAME", default="", help="With --team: only this machine."
    )
    of_person = click.option(
        "--person", metavar="NAME", default="", help="With --team: only this member."
    )
    of_team = click.option(
        "--team", "of_team", is_flag=True, help="Read what the team shares, from its server."
    )
    return of_team(of_person(of_machine(command)))


def first_entries(found: list[Entry], most: int) -> list[Entry]:
    """Return the first `most` of a team's list, and print a note if there are more."""
    if len(found) > most:
        say(f"only the newest {most:,} are shown: --person and --machine show fewer", err=True)
    return found[:most]


def choice(*, of_team: bool, since: str = "", until: str = "", **whose: str) -> Choice | None:
    """Return the choice of a team's rows, or None to read this machine.

    Raises UsageError if --person or --machine is given without --team.
    """
    given = [name for name, value in whose.items() if value]
    if given and not of_team:
        raise click.UsageError(f"--{given[0]} needs --team")
    return Choice(since=since, until=until, **whose) if of_team else None
