"""The installed version on disk, which an upgrade changes under a running process."""

from importlib.metadata import PackageNotFoundError, version


def installed() -> str:
    """Return the version, or "" in the middle of an upgrade."""
    try:
        return version("hivepipe") or ""  # None without a METADATA file
    except PackageNotFoundError:
        return ""
