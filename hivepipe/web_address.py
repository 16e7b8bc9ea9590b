"""What counts as an address that something may be sent to."""

from ipaddress import ip_address
from urllib.parse import urlsplit

KIND = "an http or https URL without a password"


def is_web_address(text: str) -> bool:
    """Is it an http or https URL with a host? One with a password in it would be shown and kept."""
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0  # a ValueError where it is no number
            and "@" not in parts.netloc
        )
    except ValueError:
        return False


def is_local(url: str) -> bool:
    """Is it on this machine? Then no proxy has any business with what is sent there."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
