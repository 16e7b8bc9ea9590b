"""Invites: one word that lets one machine join, once, until it expires.

The word holds the server's address and a login that may call `join_team` alone.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hivepipe.errors import TeamError
from hivepipe.files.regular_file import read_text
from hivepipe.home import make_folders, user_config_folder, write_small
from hivepipe.team import address
from hivepipe.team.address import SYSTEM_ROOTS, Address
from hivepipe.team.connection import one
from hivepipe.team.logins import new_login

if TYPE_CHECKING:
    import psycopg

_START = "hivepipe-"
LONGEST_ROOTS = 1 << 16


class Invited(NamedTuple):
    """A new invite."""

    word: str
    expires_at: datetime


class Joined(NamedTuple):
    """What came of joining."""

    member: str
    machine: str
    writes: Address
    reads: Address


def invite(
    connection: "psycopg.Connection[dict[str, Any]]",
    server: Address,
    member: str,
    lives: timedelta,
    team: str | None = None,
    sees: str | None = None,
) -> Invited:
    """Make an invite for a member."""
    login = new_login(connection, "invite")
    until = one(
        connection,
        "SELECT hivepipe.invite(%s, %s, %s, %s, %s, %s)",
        *(member, team, sees, login.name, login.verifier, lives.total_seconds()),
    )
    return Invited(word_of(login.at(server)), until)


def add_machine(
    connection: "psycopg.Connection[dict[str, Any]]", server: Address, member: str, team: str | None
) -> Address:
    """Make a machine without an invite, which many short-lived homes may share: for CI."""
    login = new_login(connection, "machine")
    one(
        connection,
        "SELECT hivepipe.add_machine(%s, %s, %s, %s, %s)",
        *(member, team, member, login.name, login.verifier),
    )
    return login.at(server)


def add_page(connection: "psycopg.Connection[dict[str, Any]]", server: Address) -> Address:
    """Make a login that reads for the persons of a page."""
    login = new_login(connection, "reader")
    one(connection, "SELECT hivepipe.add_page(%s, %s)", login.name, login.verifier)
    return login.at(server)


def terms(connection: "psycopg.Connection[dict[str, Any]]") -> dict[str, Any]:
    """Return what one agrees to by using this invite."""
    found: dict[str, Any] = one(connection, "SELECT hivepipe.terms_of_invite()")
    return found


def join(
    connection: "psycopg.Connection[dict[str, Any]]", invited: Address, machine: str
) -> Joined:
    """Use an invite up: make the logins of this machine."""
    writes, reads = new_login(connection, "machine"), new_login(connection, "reader")
    said = one(
        connection,
        "SELECT hivepipe.join_team(%s, %s, %s, %s, %s)",
        *(machine, writes.name, writes.verifier, reads.name, reads.verifier),
    )
    return Joined(said["member"], said["machine"], writes.at(invited), reads.at(invited))


# ---- the word


def word_of(invited: Address) -> str:
    """Return the word of a login; it holds the roots of the server's certificate, if it has own."""
    content = {"url": invited.url}
    if invited.roots not in ("", SYSTEM_ROOTS):
        content["roots"] = _roots(invited.roots)
    packed = json.dumps(content, separators=(",", ":")).encode()
    return _START + urlsafe_b64encode(packed).decode().rstrip("=")


def _roots(path: str) -> str:
    try:
        return read_text(Path(path), "utf-8")
    except (OSError, ValueError) as error:
        raise TeamError(f"{path} cannot be read: {error}") from None


def is_word(text: str) -> bool:
    """Tell whether a text is meant as an invite."""
    return text.startswith(_START)


def read_word(word: str) -> Address:
    """Return the login of an invite; its roots are kept in the user's folder. TeamError."""
    body = word.strip().removeprefix(_START)
    try:
        content = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        found, roots = str(content["url"]), content.get("roots")
    except (ValueError, LookupError, TypeError, AttributeError):
        raise TeamError("this is no invite, or a part of it is missing") from None
    invited = address.parse(found)
    return invited._replace(roots=_kept_roots(str(roots))) if roots else invited


def _kept_roots(text: str) -> str:
    """Keep the roots of the team's server; return the path."""
    if len(text) > LONGEST_ROOTS or "BEGIN CERTIFICATE" not in text:
        raise TeamError("the certificate in this invite is none")
    path = f"{user_config_folder()}/team-roots.pem"
    try:
        make_folders(user_config_folder())
        write_small(path, text)
    except OSError as error:
        raise TeamError(f"{path} cannot be written: {error.strerror}") from None
    return path
