"""Tickets: the browser is opened with one, because all users can read its command line.

A ticket admits once, for a minute, and only a process of the user (or of root, which relays).
"""

import hmac
import os
import secrets
import time
from urllib.parse import quote, unquote

LASTS_SECS = 60
NAME = "ticket"
_MOST_DIGITS = 12
_TOKEN = "?token="


def with_ticket(address: str) -> str:
    """Return the address of the page with a new ticket in the place of the token."""
    base, _, token = address.partition(_TOKEN)
    return f"{base}?{NAME}={quote(_made(unquote(token), int(time.time()) + LASTS_SECS))}"


def _made(token: str, ends: int, number: str = "") -> str:
    said = f"{ends}.{number or secrets.token_hex(8)}"
    return f"{said}.{hmac.digest(token.encode(), f'ticket {said}'.encode(), 'sha256').hex()}"


class Tickets:
    """Knows which tickets were used."""

    def __init__(self, token: str) -> None:
        """`token`: of the server."""
        self._token = token
        self._used: dict[str, float] = {}  # until when they would count

    def takes(self, ticket: str, user: str) -> bool:
        """Use a ticket that a process of a user sent; `user` "": not known."""
        ends = self._until(ticket)
        self._used = {used: until for used, until in self._used.items() if until > time.time()}
        if ends <= time.time() or ticket in self._used:
            return False
        if user not in ("", "0", str(os.getuid())):
            return False
        self._used[ticket] = ends
        return True

    def _until(self, ticket: str) -> int:
        """Return until when a ticket counts; 0: it is none of this server."""
        ends, _, rest = ticket.partition(".")
        if not (ticket.isascii() and ends.isdigit() and len(ends) <= _MOST_DIGITS):
            return 0
        same = _made(self._token, int(ends), rest.partition(".")[0])
        return int(ends) if hmac.compare_digest(ticket, same) else 0
