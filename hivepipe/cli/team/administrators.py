"""The administrator's connection for commands of `team`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hivepipe.cli.terminal import ask_secret
from hivepipe.team import administrator as administrators
from hivepipe.team.address import Address

if TYPE_CHECKING:
    import psycopg

admin_option = click.option(
    "--admin", metavar="URL", help="The administrator's address; the one of `team init` by default."
)


@contextmanager
def administrator(url: str | None) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    """Connect as the administrator."""
    with administrators.administrating(
        administrators.chosen_address(url), ask_password
    ) as connection:
        yield connection


def server_of(url: str | None) -> Address:
    """Return the server that the administrator's address names, without a login."""
    return administrators.chosen_address(url).with_login("", "")


def ask_password() -> str:
    """Ask for the password, or read it from stdin."""
    return ask_secret("password of the administrator")
