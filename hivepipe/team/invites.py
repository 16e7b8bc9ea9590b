"""Logins of a team's server, and invites: a code with which one machine can join, once.

A code expires. The code contains the server's address and a login that may only call `join_team`.
"""

import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hivepipe.errors import TeamError
from hivepipe.files.regular_file import read_text
from hivepipe.team import address
from hivepipe.team.address import SYSTEM_ROOTS, Address
from hivepipe.team.connection import Connection, one
from hivepipe.team.user_file import write_user_file

_START = "hivepipe-"
LONGEST_ROOTS = 1 << 16

Kind = Literal["invite", "machine", "reader"]


class Login(NamedTuple):
    """A new login; the server gets only its verifier, which does not reveal the secret."""

    name: str
    secret: str
    verifier: str

    def at(self, address: Address) -> Address:
        return address.with_login(self.name, self.secret)


def new_login(connection: Connection, kind: Kind) -> Login:
    """Create a login with a random name and secret."""
    name, secret = f"hivepipe_{kind}_{secrets.token_hex(8)}", secrets.token_urlsafe(24)
    verifier = connection.pgconn.encrypt_password(secret.encode(), name.encode(), b"scram-sha-256")
    return Login(name, secret, verifier.decode())


class Invited(NamedTuple):
    code: str
    expires_at: datetime


class Joined(NamedTuple):
    member: str
    machine: str
    writes: Address
    reads: Address


def invite(
    connection: Connection,
    server: Address,
    member: str,
    lives: timedelta,
    team: str | None = None,
    sees: str | None = None,
) -> Invited:
    """Make an invite for a member, valid for `lives`; `sees` is whose rows the member may read."""
    login = new_login(connection, "invite")
    until = one(
        connection,
        "SELECT hivepipe.invite(%s, %s, %s, %s, %s, %s)",
        *(member, team, sees, login.name, login.verifier, lives.total_seconds()),
    )
    return Invited(code_of(login.at(server)), until)


def add_machine(connection: Connection, server: Address, member: str, team: str | None) -> Address:
    """Create a machine without an invite, for CI; return the address with its login.

    Many short-lived homes can share it.
    """
    login = new_login(connection, "machine")
    one(
        connection,
        "SELECT hivepipe.add_machine(%s, %s, %s, %s, %s)",
        *(member, team, member, login.name, login.verifier),
    )
    return login.at(server)


def add_page(connection: Connection, server: Address) -> Address:
    """Create the login with which the team's page reads for its users; return its address."""
    login = new_login(connection, "reader")
    one(connection, "SELECT hivepipe.add_page(%s, %s)", login.name, login.verifier)
    return login.at(server)


def terms(connection: Connection) -> dict[str, Any]:
    """Return the sharing terms that a member accepts by using this invite."""
    found: dict[str, Any] = one(connection, "SELECT hivepipe.terms_of_invite()")
    return found


def join(connection: Connection, invited: Address, machine: str) -> Joined:
    """Redeem an invite: create the logins of this machine, and return them."""
    writes, reads = new_login(connection, "machine"), new_login(connection, "reader")
    answer = one(
        connection,
        "SELECT hivepipe.join_team(%s, %s, %s, %s, %s)",
        *(machine, writes.name, writes.verifier, reads.name, reads.verifier),
    )
    return Joined(answer["member"], answer["machine"], writes.at(invited), reads.at(invited))


# ---- the code


def code_of(invited: Address) -> str:
    """Return the code of a login, including the root certificates of a private authority."""
    content = {"url": invited.url}
    if invited.roots not in ("", SYSTEM_ROOTS):
        content["roots"] = _roots(invited.roots)
    packed = json.dumps(content, separators=(",", ":")).encode()
    return _START + urlsafe_b64encode(packed).decode().rstrip("=")


def _roots(path: str) -> str:
    try:
        return read_text(Path(path))
    except (OSError, ValueError) as error:
        raise TeamError(f"{path} cannot be read: {error}") from None


def is_code(text: str) -> bool:
    return text.startswith(_START)


def read_code(code: str) -> Address:
    """Return a code's login, and store its root certificates. Raise TeamError for a bad code."""
    body = code.strip().removeprefix(_START)
    try:
        content = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        found, roots = str(content["url"]), content.get("roots")
    except (ValueError, LookupError, TypeError, AttributeError):
        raise TeamError("this is not an invite, or a part of it is missing") from None
    invited = address.parse(found)
    return invited._replace(roots=_kept_roots(str(roots))) if roots else invited


def _kept_roots(text: str) -> str:
    """Store the root certificates that verify the team's server; return their path.

    Raise TeamError if the text contains no certificate.
    """
    if len(text) > LONGEST_ROOTS or "BEGIN CERTIFICATE" not in text:
        raise TeamError("this invite contains something other than a certificate")
    return write_user_file("team-roots.pem", text)
