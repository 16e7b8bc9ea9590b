"""Authentication of requests: the token, a cookie for each server, and a loopback host."""

import hmac
from hashlib import blake2b

from hivepipe.text.urls import is_local


def cookie_name(token: str) -> str:
    """Return the name of the cookie, which differs by server because cookies ignore ports."""
    return f"hivepipe_{blake2b(token.encode(), digest_size=4).hexdigest()}"


def cookie_value(token: str, user: str) -> str:
    """Return the value of the cookie: an HMAC of the token that is valid only for this user.

    Browsers send a cookie to every port, and so to servers of other users.
    """
    return hmac.digest(token.encode(), f"cookie {user}".encode(), "sha256").hex()


def is_loopback(host: str) -> bool:
    """Tell whether a host is localhost or a loopback address; other names are not resolved."""
    return is_local(f"//{host}")


def is_token(given: str, token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
