"""Command `team retention`: how many months the team keeps."""

from typing import Any

import click

from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.team.administrators import admin_option, administrator
from hivepipe.cli.team.deleted_lines import show_deleted
from hivepipe.cli.terminal import confirm_or_end, refuse_question, say, yes_option
from hivepipe.team.archives import leftovers
from hivepipe.team.connection import one
from hivepipe.team.retention import drop_all, retention_of
from hivepipe.text.plurals import counted

ALL = "all"


class Months(click.ParamType[int]):
    """A number of months, or `all`, which is 0."""

    name = "months"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if value == ALL:
            return 0
        text = str(value)
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= 1200):
            self.fail("months are a number from 1 to 1200, or all", param, ctx)
        return int(text)


@click.command()
@click.argument("months", metavar="[MONTHS|all]", type=Months(), required=False)
@yes_option
@admin_option
@json_option
def retention(months: int | None) -> None:
    """Show or set how many months the team keeps.

    The present month and the MONTHS whole months before it are kept, by default all months. Older
    months are dropped now, and later whenever a machine connects. Machines keep their own data, and
    do not send dropped months again.
    """
    if months:
        refuse_question()
    with administrator() as connection:
        if months:
            confirm_or_end(f"Delete what is older than {counted(months, 'whole month')}?")
        if months is not None:
            one(connection, "SELECT hivepipe.set_retention(%s)", months)
        proofs = [*drop_all(connection)]
        objects = leftovers.delete_now_or_later(connection) if proofs else {}
        found = retention_of(connection)
    if show_json(months=found.months, kept_from=found.kept_from, proofs=proofs, objects=objects):
        return
    _show(proofs, objects)
    if found.months:
        say(f"kept: {counted(found.months, 'whole month')}, from {found.kept_from} on")
    else:
        say("kept: all")


def _show(proofs: list[dict[str, Any]], objects: dict[str, int]) -> None:
    for proof in proofs:
        show_deleted(proof["places"], "dropped")
        say(f"proof {proof['id']}, {proof['at']}: {proof['cause']}")
    show_deleted(objects)
