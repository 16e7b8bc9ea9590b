"""The installed version on disk, which an upgrade changes under a running process."""

from importlib.metadata import PackageNotFoundError, version


def installed() -> str:
    """Return the version, or "" in the middle of an upgrade."""
    try:
        return version("hivepipe")
    except PackageNotFoundError:
        return ""
