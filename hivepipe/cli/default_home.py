"""A check before commands that write outside of registered projects.

The command prints that it uses the default home. Without a default home the command fails, so that
it does not create a database by mistake.
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from hivepipe.cli.terminal import say, short
from hivepipe.errors import RegistrationError
from hivepipe.home import default_home, locate, read_record

# Command that writes to a home -> the parameter that makes it write; "": it always writes.
WRITING = {
    **dict.fromkeys(("archive follow", "archive rebuild-index", "archive sweep"), ""),
    **dict.fromkeys(("cleanup", "drain", "forget", "hive init", "restore", "search"), ""),
    **dict.fromkeys(("failed discard", "failed retry", "import-db", "import-queue"), ""),
    **dict.fromkeys(("memory forget", "memory list", "memory search"), ""),
    **dict.fromkeys(("profile add", "profile put", "profile remove"), ""),
    **dict.fromkeys(("summaries disable", "summaries enable", "summaries run"), ""),
    **dict.fromkeys(("task add", "task assign", "task cancel", "task done"), ""),
    **dict.fromkeys(("task progress", "task reopen"), ""),
    "disk": "prune",
    "guard mode": "mode",
}


def announcing_home(command: click.Command, path: str) -> click.Command:
    """Let a command and its subcommands print the default home before they write to it."""
    if path in WRITING and command.callback and not hasattr(command.callback, "__wrapped__"):
        command.callback = _naming(command.callback, WRITING[path])
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            announcing_home(below, f"{path} {name}")
    return command


def _naming(callback: Callable[..., Any], parameter: str) -> Callable[..., Any]:
    @wraps(callback)
    def named(*arguments: Any, **options: Any) -> Any:
        if not parameter or options.get(parameter):
            _name_default_home()
        return callback(*arguments, **options)

    return named


def _name_default_home() -> None:
    place = locate(".")
    if place.home != default_home():
        return
    if not os.path.isdir(place.home) and not read_record(place.home):
        raise RegistrationError(
            f"{place.project} belongs to no registered project, and there is no default home: run "
            f"`hivepipe init` in the project, or `hivepipe init --user` for all of them"
        )
    say(
        f"hivepipe: {place.project} belongs to no registered project (`hivepipe init`): this acts "
        f"on the default home, {short(place.home)}",
        err=True,
    )
