"""Commands of an administrator: `team init`, `invite`, `members`, `revoke`, `forget`, `export`."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import json_option, output_options, show_entries, show_json
from hivepipe.cli.team.administrators import admin_option, administrator, ask_password, server
from hivepipe.cli.team.deleted_lines import show_deleted
from hivepipe.cli.terminal import confirm_or_end, refuse_question, say, say_json, yes_option
from hivepipe.errors import TeamError
from hivepipe.team import administrator as administrators
from hivepipe.team import deletion, invites, schema_steps
from hivepipe.team.connection import one
from hivepipe.text.plurals import counted

SIGHTS = ("self", "team", "all")
_SPAN = re.compile(r"(\d{1,4})([mhd])")
_COLUMNS = {
    **{name: name for name in ("machine", "member", "team", "sees", "state")},
    "seen": "seen_at",
    "homes": "homes",
}
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class Span(click.ParamType[timedelta]):
    """A span of time such as 30m, 24h or 7d."""

    name = "span"

    def convert(self, value: Any, param: Any, ctx: Any) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = _SPAN.fullmatch(str(value))
        if not found or not int(found[1]):
            self.fail("a span is a number and m, h or d, such as 24h", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.command()
@click.argument("url")
def init(url: str) -> None:
    """Prepare a PostgreSQL for a team, or upgrade its schema.

    URL is the administrator's address, without a password: postgresql://ADMIN@HOST/DATABASE. The
    administrator owns the database and may create roles.
    """
    address = administrators.chosen_address(url)
    with administrators.administrating(address, ask_password) as connection:
        made = schema_steps.apply(connection)
    administrators.keep(address)
    say(f"{address.shown}: {counted(len(made), 'step')} of the schema applied")
    if made:
        say("next: hivepipe team invite NAME")


@click.command()
@click.argument("name")
@click.option(
    "--expires", type=Span(), default="24h", help="How long the invite is valid: 30m, 24h, 7d."
)
@click.option(
    "--team", metavar="TEAM", help="The member's group; `--sees team` shows the rows of this group."
)
@click.option(
    "--sees", type=Choice(SIGHTS), help="Whose rows the member reads; by default its own."
)
@click.option("--ci", is_flag=True, help="Print a URL for HIVEPIPE_TEAM that many machines use.")
@admin_option
@json_option
def invite(name: str, expires: timedelta, team: str | None, sees: str | None, ci: bool) -> None:
    """Invite a member: print a secret code to join with."""
    with administrator() as connection:
        if one(connection, "SELECT count(*) FROM hivepipe.members WHERE name = %s", name):
            text = (
                "is a member already: the invite adds a machine. Another person needs another name"
            )
            say(f"{name} {text}", err=True)
        if ci:
            secret, until = invites.add_machine(connection, server(), name, team).url, None
        else:
            made = invites.invite(connection, server(), name, expires, team, sees)
            secret, until = made.code, made.expires_at
    if show_json(secret=secret, expires_at=until.isoformat() if until else None):
        return
    say(secret)
    if ci:
        say("this URL is a secret: set it as HIVEPIPE_TEAM", err=True)
    else:
        say(f"this code is a secret: one machine can join with it until {_shown(until)}", err=True)


def _shown(until: datetime | None) -> str:
    return f"{until.astimezone():%Y-%m-%d %H:%M}" if until else ""


@click.command()
@admin_option
@output_options
def members() -> None:
    """List members, machines and open invites."""
    with administrator() as connection:
        rows = connection.execute("SELECT * FROM hivepipe.v_members").fetchall()
    found = [_with_stored_time(row) for row in rows]
    show_entries("members", found, _COLUMNS)


def _with_stored_time(row: dict[str, Any]) -> dict[str, Any]:
    seen = row["seen_at"]
    return {**row, "seen_at": f"{seen:%Y-%m-%dT%H:%M:%S}.000Z" if seen else None}


@click.command()
@click.argument("machine")
@admin_option
def revoke(machine: str) -> None:
    """End the logins of a machine, or the unused invites of a member.

    Recorded rows stay. If several members have a machine of this name, give MEMBER/MACHINE.
    """
    with administrator() as connection:
        done = one(connection, "SELECT hivepipe.revoke(%s)", machine)
    if not done:
        raise TeamError(f"there is no machine and no open invite of the name {machine}")
    say(f"revoked: {done}")


@click.command()
@click.argument("what", metavar="PERSON|SESSION")
@yes_option
@admin_option
@json_option
def forget(what: str) -> None:
    """Delete a member or a session from the team's server.

    Prints the number of deleted rows for each place. The machines keep their own data. The server
    does not accept a forgotten session again.
    """
    refuse_question()
    with administrator() as connection:
        found = deletion.find(connection, what)
        confirm_or_end(f"Delete {found.described} from the team's server?")
        proof = deletion.forget(connection, found)
    if not show_json(proof=proof):
        show_deleted(proof["places"])
        say(f"proof {proof['id']}, {proof['at']}")


@click.command()
@click.argument("person")
@click.option(
    "--archives",
    "folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the archived lines to this folder, too.",
)
@admin_option
def export(person: str, folder: Path | None) -> None:
    """Print all data of a member as JSON lines.

    --archives needs the key of their store, and the key that they are encrypted with.
    """
    with administrator() as connection:
        for line in deletion.exported(connection, person, folder):
            say_json(line, at_once=False)
