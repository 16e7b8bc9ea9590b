"""The administrator's login: the address is stored, the password is not.

The password comes from libpq's password file (~/.pgpass), or the command asks for it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hivepipe.errors import TeamError, TeamRefusedError
from hivepipe.home import read_small, user_config_folder
from hivepipe.team import address
from hivepipe.team.address import Address
from hivepipe.team.connection import Connection, connected
from hivepipe.team.user_file import write_user_file

FILE_NAME = "team-admin"


def file_path() -> str:
    return f"{user_config_folder()}/{FILE_NAME}"


def chosen_address(url: str | None) -> Address:
    """Return the given or stored address. Raise TeamError if it is missing or has a password."""
    found = address.parse(url or _kept())
    if found.secret:
        raise TeamError(
            "a password on a command line is visible to other users: leave it out and enter it "
            "when asked (or put it into ~/.pgpass)"
        )
    return found


def _kept() -> str:
    kept = read_small(file_path()).strip()
    if not kept:
        raise TeamError(
            "no address of an administrator is stored: `hivepipe team init URL`, or --admin URL"
        )
    return kept


def keep(server: Address) -> None:
    """Store the administrator's address for the next command. Raise TeamError on failure."""
    write_user_file(FILE_NAME, f"{server.url}\n")


@contextmanager
def administrating(server: Address, ask_secret: Callable[[], str]) -> Iterator[Connection]:
    """Connect as the administrator, and ask for the password if the server requires one."""
    try:
        with connected(server) as connection:
            yield connection
            return
    except TeamRefusedError as error:
        if "no password supplied" not in str(error):
            raise
    with connected(server.with_login(server.user, ask_secret())) as connection:
        yield connection
