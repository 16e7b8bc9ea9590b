"""Command `forget`: what is kept of a session goes, from every place."""

import os
import shlex
import sqlite3
from collections.abc import Iterable

import click

from hivepipe.cli.tables import printable
from hivepipe.errors import HivepipeError
from hivepipe.forgetting import Forgetting, Gone, opened
from hivepipe.home import locate


@click.command()
@click.argument("session", metavar="SESSION")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(session: str, dry_run: bool, yes: bool) -> None:
    """Remove all that is kept of SESSION, for good; the beginning of its id is enough.

    It stays forgotten, also when it goes on. Claude Code's own transcript is not touched.
    """
    os.umask(0o077)
    place = locate(".")
    if not os.path.isdir(place.home):
        raise HivepipeError(f"nothing was ever kept here: there is no {place.home}")
    db = opened(place)
    try:
        forgetting = Forgetting(place, db)
        chosen = forgetting.session_beginning(session)
        transcripts = forgetting.transcripts(chosen)
        click.echo(f"session {chosen}")
        if not dry_run and not yes:
            _show(forgetting.forget(chosen, dry_run=True), "would go")
            click.confirm("Forget all this, and every backup of the database?", abort=True)
        said = "would go" if dry_run else "gone"
        _show(forgetting.forget(chosen, dry_run=dry_run), said)
        _show(forgetting.clean(dry_run=dry_run), said)
    except (OSError, sqlite3.Error) as error:
        raise HivepipeError(f"not all is forgotten, run it again: {error}") from error
    finally:
        db.close()
    for path in transcripts:
        click.echo(
            f"Claude Code's own transcript is still there: rm {printable(shlex.quote(path))}"
        )


def _show(places: Iterable[Gone], said: str) -> None:
    for place, number, what in places:
        if number:
            click.echo(f"{said}: {place}: {number} {what}")
