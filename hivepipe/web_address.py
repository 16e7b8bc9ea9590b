"""What counts as an address that something may be sent to."""

from urllib.parse import urlsplit

KIND = "an http or https URL without a password"


def is_web_address(text: str) -> bool:
    """Is it an http or https URL with a host? One with a password in it would be shown and kept."""
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
        )
    except ValueError:
        return False
