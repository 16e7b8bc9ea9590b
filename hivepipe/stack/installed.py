"""The version on disk, which an upgrade changes under a running process."""

from importlib.metadata import PackageNotFoundError, version


def installed() -> str:
    """Return it; empty in the middle of the upgrade."""
    try:
        return version("hivepipe")
    except PackageNotFoundError:
        return ""
