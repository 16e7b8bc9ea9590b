"""Command `hive rights`: what workers may do without asking, chosen by the user."""

import sys

import click

from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import ask, is_terminal, say, short
from hivepipe.config.config_file import load_and_use
from hivepipe.errors import HiveError
from hivepipe.install.user_config import config_path, put_setting
from hivepipe.orchestrator.rights import CHOICES, chosen_rights, config_lines

_NAME = Choice(list(CHOICES))


@click.command()
@click.argument("name", metavar="[RIGHTS]", type=_NAME, required=False)
@json_option
def rights(name: str | None) -> None:
    """Show or choose what workers may do without asking.

    Rights can be chosen in a terminal only, so that neither a worker nor a project changes them.
    """
    if name or not chosen_rights():
        choose(name)
    now = CHOICES[chosen_rights()]
    if not show_json(rights=now.name, text=f"a worker may {now.meaning}"):
        say(f"{now.name}: a worker may {now.meaning}")


def ask_once() -> None:
    """Ask the user for the workers' rights if none are chosen and there is a terminal.

    Without a terminal, the start of a worker fails later.
    """
    if not chosen_rights() and _is_terminal():
        choose(None)


def choose(name: str | None) -> None:
    """Write the user's choice to their config.toml. Raises HiveError outside of a terminal."""
    if not _is_terminal():
        raise HiveError(
            f"rights are chosen in a terminal, or by one line in {config_path()}: {config_lines()}"
        )
    if not name:
        say("What may a worker do without asking? While it runs, it cannot ask.", err=True)
        for each in CHOICES.values():
            say(f"  {each.name:<8} {each.meaning}", err=True)
        name = ask("your choice", type=_NAME, err=True)
    put_setting("hive_rights", str(name))
    say(f"stored in {short(config_path())}; `hivepipe hive rights` changes it", err=True)
    load_and_use()  # the setting applies from now on


def _is_terminal() -> bool:
    return sys.stdin.isatty() and is_terminal(err=True)
