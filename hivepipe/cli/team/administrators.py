"""The connection of the administrator for commands of `team`."""

from collections.abc import Iterator
from contextlib import contextmanager

from hivepipe.cli.parameters import given, shared_option
from hivepipe.cli.terminal import ask_secret
from hivepipe.team import administrator as administrators
from hivepipe.team.address import Address
from hivepipe.team.connection import Connection

admin_option = shared_option(
    "--admin", metavar="URL", help="The administrator's address; the one of `team init` by default."
)


@contextmanager
def administrator() -> Iterator[Connection]:
    with administrators.administrating(_address(), ask_password) as connection:
        yield connection


def server() -> Address:
    """Return the server in the administrator's address, without user and password."""
    return _address().with_login("", "")


def _address() -> Address:
    return administrators.chosen_address(given("admin"))


def ask_password() -> str:
    return ask_secret("password of the administrator")
