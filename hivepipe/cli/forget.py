"""Command `forget`: what is kept of a session goes, from every place."""

import os
import shlex
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import click

from hivepipe.cli.tables import printable
from hivepipe.errors import HivepipeError
from hivepipe.forgetting import Forgetting, Gone, opened
from hivepipe.home import locate


@click.command()
@click.argument("session", metavar="[SESSION]", required=False)
@click.option(
    "--before",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="All sessions that were last seen before this day (2026-11-21).",
)
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(session: str | None, before: datetime | None, dry_run: bool, yes: bool) -> None:
    """Remove all that is kept of SESSION, for good; the beginning of its id is enough.

    It stays forgotten, also when it goes on. Claude Code's own transcript is not touched.
    """
    if (session is None) == (before is None):
        raise click.UsageError("say which: SESSION or --before DATE")
    os.umask(0o077)
    place = locate(".")
    if not os.path.isdir(place.home):
        raise HivepipeError(f"nothing was ever kept here: there is no {place.home}")
    db = opened(place)
    try:
        forgetting = Forgetting(place, db)
        if before is None:
            sessions = [forgetting.session_beginning(session or "")]
        else:
            sessions = forgetting.sessions_before(_utc(before))
        _forget(forgetting, sessions, dry_run, yes)
    except (OSError, sqlite3.Error) as error:
        raise HivepipeError(f"not all is forgotten, run it again: {error}") from error
    finally:
        db.close()


def _forget(forgetting: Forgetting, sessions: list[str], dry_run: bool, yes: bool) -> None:
    transcripts = [path for each in sessions for path in forgetting.transcripts(each)]
    for each in sessions:
        click.echo(f"session {printable(each)}")
    if not sessions:
        click.echo("no session is that old")
        return

    def all_of_them(rehearse: bool) -> Iterator[Gone]:
        for each in sessions:
            yield from forgetting.forget(each, dry_run=rehearse)
        yield from forgetting.clean(dry_run=rehearse)

    _ask_and_do(all_of_them, dry_run, yes)
    for path in transcripts:
        click.echo(
            f"Claude Code's own transcript is still there: rm {printable(shlex.quote(path))}"
        )


def _ask_and_do(go: Callable[[bool], Iterable[Gone]], dry_run: bool, yes: bool) -> None:
    if dry_run or not yes:
        _show(go(True), "would go")
    if not dry_run:
        if not yes:
            click.confirm("Forget all this, and every backup of the database?", abort=True)
        _show(go(False), "gone")


def _show(places: Iterable[Gone], said: str) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for place, number, what in places:
        found[place, what] += number
    for (place, what), number in found.items():
        if number:
            click.echo(f"{said}: {place}: {number} {what}")


def _utc(day: datetime) -> str:
    """Return the beginning of a local day as times are stored."""
    return day.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
