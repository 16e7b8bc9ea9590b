"""Command `failed`: look at dead letters, send them back, or drop them."""

import json
from collections.abc import Callable
from typing import Any

import click

from hivepipe.cli.tables import (
    json_option,
    moment,
    printable,
    show_json,
    show_table,
    utc_option,
)
from hivepipe.home import locate
from hivepipe.queues.dead_letters import DeadLetter, DeadLetters, dead_letters
from hivepipe.store.location import database_path

Command = Callable[..., None]


@click.group()
def failed() -> None:
    """Look at the jobs that failed for good: `list`, `show`, `retry`, `discard`."""


def selecting(command: Command) -> Command:
    """Add the three ways to say which dead letters are meant."""
    for option in (
        click.option("--operation", metavar="OP", help="All of this operation; ?: unreadable."),
        click.option("--all", "everything", is_flag=True, help="All dead letters."),
        click.argument("job_id", metavar="[ID]", required=False),
    ):
        command = option(command)
    return command


@failed.command("list")
@click.option("--operation", metavar="OP", help="Only this operation; ?: the unreadable ones.")
@json_option
@utc_option
def list_letters(operation: str | None, as_json: bool, utc: bool) -> None:
    """List the dead letters with the reason of each."""
    with dead_letters(locate(".").socket) as store:
        found = store.letters(operation or "")
    if as_json:
        show_json(failed=[_described(letter) for letter in found])
        return
    if not found:
        click.echo("no dead letters")
        return
    rows = [
        (
            letter.id,
            letter.operation,
            letter.queue,
            moment(letter.failed_at, utc),
            letter.session[:8],
            letter.headline,
        )
        for letter in found
    ]
    show_table(("id", "operation", "queue", "failed", "session", "reason"), rows)


@failed.command()
@click.argument("job_id", metavar="ID")
@utc_option
def show(job_id: str, utc: bool) -> None:
    """Show one dead letter, redacted, and what can be done; ID may be the beginning of one."""
    place = locate(".")
    with dead_letters(place.socket) as store:
        letter = store.letter(job_id)
    for name, value in (
        ("id", letter.id),
        ("operation", letter.operation),
        ("description", letter.description),
        ("session", letter.session),
        ("queue", f"{letter.queue}, retried in {letter.target}"),
        ("attempts", letter.attempts),
        ("event", moment(letter.event_time, utc)),
        ("failed", moment(letter.failed_at, utc)),
        ("reason", letter.reason),
    ):
        click.echo(f"{name:<12} {printable(value)}")
    if letter.payload is None:
        click.echo("payload      cannot be read")
    else:
        click.echo(f"payload      {json.dumps(letter.payload, indent=2)}")
    for line in _steps(letter, str(database_path(place.home))):
        click.echo(printable(line))


@failed.command()
@selecting
def retry(job_id: str | None, everything: bool, operation: str | None) -> None:
    """Send one dead letter (ID), all, or those of one operation back to their queues."""
    with dead_letters(locate(".").socket) as store:
        letters = _selected(store, job_id, everything, operation)
        retried = store.retry(letters)
    click.echo(f"{retried} sent back to the queues")
    if retried < len(letters):
        click.echo(f"{len(letters) - retried} have no data any more: discard them", err=True)
        click.get_current_context().exit(1)


@failed.command()
@selecting
@click.option("--yes", is_flag=True, help="Do not ask.")
def discard(job_id: str | None, everything: bool, operation: str | None, yes: bool) -> None:
    """Remove one dead letter (ID), all, or those of one operation, for good."""
    with dead_letters(locate(".").socket) as store:
        letters = _selected(store, job_id, everything, operation)
        if letters and not yes:
            click.confirm(f"Discard {_named(letters)} for good?", abort=True)
        click.echo(f"{store.discard(letters)} discarded")


def _selected(
    store: DeadLetters, job_id: str | None, everything: bool, operation: str | None
) -> list[DeadLetter]:
    if sum((bool(job_id), everything, bool(operation))) != 1:
        raise click.UsageError("say which: an ID, --all, or --operation OP")
    return [store.letter(job_id)] if job_id else store.letters(operation or "")


def _named(letters: list[DeadLetter]) -> str:
    if len(letters) == 1:
        return printable(f"{letters[0].id} ({letters[0].operation})")
    return f"{len(letters)} dead letters"


def _steps(letter: DeadLetter, database: str) -> list[str]:
    """Say what a person can do about it."""
    retry_it = f"`hivepipe failed retry {letter.id}`"
    drop_it = f"`hivepipe failed discard {letter.id}`"
    if letter.missing_parent is None:
        return ["", f"try again: {retry_it}", f"or drop it: {drop_it}"]
    kind, missing = letter.missing_parent
    mend = {
        "swarm": f"restore the swarm (a row with this id in `swarms`), or give session "
        f"{letter.session} a `swarm_id` that exists",
        "session": "restore the session (a row with this id in `sessions`); resumed in Claude "
        "Code, it comes back by itself unless it was deleted",
    }[kind]
    return [
        "",
        f"missing {kind}: {missing}",
        f"  1. {mend}; the database is {database}",
        f"  2. {retry_it}",
        f"or drop it: {drop_it}",
    ]


def _described(letter: DeadLetter) -> dict[str, Any]:
    missing = letter.missing_parent
    return {
        "id": letter.id.encode("utf-8", "replace").decode(),
        "operation": letter.operation,
        "queue": letter.queue,
        "description": letter.description,
        "session": letter.session or None,
        "attempts": letter.attempts,
        "failed_at": letter.failed_at or None,
        "event_time": letter.event_time or None,
        "reason": letter.reason,
        "missing": {"kind": missing[0], "id": missing[1]} if missing else None,
        "payload": letter.payload,
    }
