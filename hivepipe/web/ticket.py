"""Tickets replace the token in a browser's command line, which all users can read.

A ticket is valid once, for a minute, and only for a process of the user (or of root, as a relay).
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

Used = dict[str, float]  # used tickets and their expiry times in seconds


def with_ticket(address: str) -> str:
    """Return the URL of the page with a new ticket instead of the token."""
    base, _, token = address.partition(_TOKEN)
    return f"{base}?{NAME}={quote(_made(unquote(token), int(time.time()) + LASTS_SECS))}"


def _made(token: str, ends: int, number: str = "") -> str:
    content = f"{ends}.{number or secrets.token_hex(8)}"
    return f"{content}.{hmac.digest(token.encode(), f'ticket {content}'.encode(), 'sha256').hex()}"


class Tickets:
    """Validates tickets, and stores used tickets until they expire."""

    def __init__(self, token: str, used: Used) -> None:
        """Set up; used tickets are added to `used`."""
        self._token = token
        self._used = used

    def redeem(self, ticket: str, user: str) -> bool:
        """Use up a ticket; return whether it was valid for `user`, the sender's user id or ""."""
        ends = self._until(ticket)
        for used in [used for used, until in self._used.items() if until <= time.time()]:
            del self._used[used]
        if ends <= time.time() or ticket in self._used:
            return False
        if user not in ("", "0", str(os.getuid())):
            return False
        self._used[ticket] = ends
        return True

    def _until(self, ticket: str) -> int:
        """Return the expiry time of a ticket, or 0 if this server did not issue it."""
        ends, _, rest = ticket.partition(".")
        if not (ticket.isascii() and ends.isdigit() and len(ends) <= _MOST_DIGITS):
            return 0
        same = _made(self._token, int(ends), rest.partition(".")[0])
        return int(ends) if hmac.compare_digest(ticket, same) else 0
