"""Validation of web addresses to which data is sent."""

from ipaddress import ip_address
from urllib.parse import urlsplit

KIND = "an http or https URL without a password"


def is_web_address(text: str) -> bool:
    """Tell whether a text is an http or https URL with a host and without a password."""
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0  # `parts.port` raises ValueError if it is not a number
            and "@" not in parts.netloc
        )
    except ValueError:
        return False


def is_local(url: str) -> bool:
    """Tell whether a URL names this machine, which is accessed without a proxy."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
