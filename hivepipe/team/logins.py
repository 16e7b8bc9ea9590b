"""Logins of a team's server: their names, secrets and SCRAM verifiers."""

import secrets
from typing import Literal, NamedTuple

from hivepipe.team.address import Address
from hivepipe.team.connection import Connection

Kind = Literal["invite", "machine", "reader"]


class Login(NamedTuple):
    """A new login; the server gets only the verifier, which does not reveal the secret."""

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
