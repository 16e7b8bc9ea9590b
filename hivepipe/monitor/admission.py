"""What admits a request: the token, a cookie of its own for each server, and a loopback host."""

import hmac
from hashlib import blake2b
from ipaddress import ip_address
from urllib.parse import urlsplit


def cookie_name(token: str) -> str:
    """Return a cookie name per server, because cookies ignore ports."""
    return f"hivepipe_{blake2b(token.encode(), digest_size=4).hexdigest()}"


def cookie_value(token: str, user: str) -> str:
    """Return what the cookie holds: not the token, and of use to this user of the machine alone.

    Browsers send a cookie to every port, so also to a server of another user.
    """
    return hmac.digest(token.encode(), f"cookie {user}".encode(), "sha256").hex()


def is_loopback(host: str) -> bool:
    """Tell whether a host name is a loopback one; another name may resolve to this machine, too."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def is_token(given: str, token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
