"""Command `forget`: delete everything that is recorded about sessions."""

import os
import shlex
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial

import click

from hivepipe.cli.here import refuse_missing
from hivepipe.cli.parameters import DAY, CheckedCommand, given
from hivepipe.cli.tables import as_json, json_option, printable, show_json, stored
from hivepipe.cli.terminal import confirm_or_end, say, yes_option
from hivepipe.db.database import opened
from hivepipe.errors import HivepipeError
from hivepipe.home import locate
from hivepipe.jobs.forget_query import ForgetQuery
from hivepipe.maintenance.forget import Deleted, Forgetting
from hivepipe.text.plurals import counted

SHORTEST_TEXT = 4
_NOT_READ = "not all data can be read"
_NOT_YET = "some data is not deleted yet (run the command again)"


def _check(
    *, session: str | None, before: datetime | None, matching: str | None, dry_run: bool
) -> None:
    if sum(choice is not None for choice in (session, before, matching)) != 1:
        raise click.UsageError("one of SESSION, --before DATE and --matching TEXT is required")
    if as_json() and not (dry_run or given("yes")):
        raise click.UsageError("with --json no question is asked: add --dry-run or --yes")
    if matching not in (None, "-"):
        _refuse_short(matching)


def _refuse_short(text: str) -> None:
    if len(text) < SHORTEST_TEXT:
        raise click.UsageError(f"the text needs at least {SHORTEST_TEXT} characters")


@click.command(cls=CheckedCommand, check=_check)
@click.argument("session", metavar="[SESSION]", required=False)
@click.option(
    "--before",
    metavar="DATE",
    type=DAY,
    help="Forget sessions without an event since this day (2026-11-21), and"
    " sessions that an interrupted `forget` left.",
)
@click.option(
    "--matching",
    metavar="TEXT",
    help="Forget sessions that contain exactly this text, and sessions that an interrupted `forget`"
    " left; `-` reads the text from stdin, which keeps it out of the shell's history.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; change nothing.")
@yes_option
@json_option
def forget(
    session: str | None, before: datetime | None, matching: str | None, dry_run: bool
) -> None:
    """Delete everything about SESSION, an id or a prefix of one. This cannot be undone.

    Later events of the session are dropped. Claude Code's own transcript is not changed.
    """
    if matching == "-":
        matching = sys.stdin.read().rstrip("\n")
        _refuse_short(matching)
    wanted = ForgetQuery(frozenset()) if matching is None else ForgetQuery.text(matching)
    place = locate(".")
    refuse_missing(place.home)
    problem = _NOT_READ if dry_run else _NOT_YET
    with opened(place.home) as db:
        try:
            forgetting = Forgetting(place, db)
            if session is not None:
                wanted = wanted.with_sessions({forgetting.session_beginning(session)})
            elif before is not None:
                wanted = wanted.with_sessions(forgetting.sessions_before(stored(before)))
            else:
                wanted = wanted.with_sessions(
                    forgetting.sessions_with_text(wanted, dry_run=dry_run)
                )
            if as_json():
                _forget_as_json(forgetting, wanted, dry_run)
            else:
                _forget(forgetting, wanted, dry_run)
            if forgetting.unread_hives:
                raise HivepipeError(f"{problem}: {'; '.join(sorted(forgetting.unread_hives))}")
        except (OSError, sqlite3.Error) as error:
            raise HivepipeError(f"{problem}: {error}") from error


def _forget_as_json(forgetting: Forgetting, wanted: ForgetQuery, dry_run: bool) -> None:
    transcripts = forgetting.transcripts(wanted.sessions)
    found = list(_all_of_it(forgetting, wanted, dry_run)) if _is_something(wanted) else []
    left = forgetting.files_with(wanted) if wanted.spellings and not dry_run else []
    show_json(
        dry_run=dry_run,
        sessions=sorted(wanted.sessions),
        gone=[{"place": place, "count": number, "what": what} for place, number, what in found],
        transcripts=list(transcripts),
        moved_aside=forgetting.moved_aside(),
        left=list(left),
    )
    if left:
        click.get_current_context().exit(1)


def _is_something(wanted: ForgetQuery) -> bool:
    """Tell whether the query found sessions, or has a text to delete."""
    return bool(wanted.sessions or wanted.spellings)


def _all_of_it(forgetting: Forgetting, wanted: ForgetQuery, dry_run: bool) -> Iterator[Deleted]:
    yield from forgetting.forget(wanted, dry_run=dry_run)
    yield from forgetting.clean(dry_run=dry_run)


def _forget(forgetting: Forgetting, wanted: ForgetQuery, dry_run: bool) -> None:
    transcripts = forgetting.transcripts(wanted.sessions)
    folders = forgetting.hive_folders(wanted.sessions)
    for each in sorted(wanted.sessions):
        say(f"session {each}")
    if not wanted.sessions:
        say("no session is that old" if not wanted.spellings else "no session contains it")
        if not _is_something(wanted):
            return
    _ask_and_do(partial(_all_of_it, forgetting, wanted), dry_run)
    for path in transcripts:
        say(f"Claude Code's own transcript is kept: rm {shlex.quote(path)}")
    for path in filter(os.path.isdir, () if dry_run else folders):
        say(f"A hive worker's folder is kept: rm -r {shlex.quote(path)}")
    for path in forgetting.moved_aside():
        say(f"Data that `restore --replace` moved aside is kept: rm -r {shlex.quote(path)}")
    left = forgetting.files_with(wanted) if wanted.spellings and not dry_run else []
    if left:
        raise HivepipeError(f"the text is still in {', '.join(map(printable, left))}")


def _ask_and_do(go: Callable[[bool], Iterable[Deleted]], dry_run: bool) -> None:
    if dry_run or not given("yes"):
        _show(go(True), "would delete")
    if not dry_run:
        confirm_or_end("Delete all this, and every backup of the database?")
        _show(go(False), "deleted")


def _show(places: Iterable[Deleted], action: str) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for place, number, what in places:
        found[place, what] += number
    for (place, what), number in found.items():
        if number:
            say(f"{action}: {place}: {counted(number, what)}")
