"""The installed version on disk, which an upgrade changes under a running process."""

from importlib.metadata import PackageNotFoundError, metadata


def installed() -> str:
    """Return the version, or "" in the middle of an upgrade."""
    try:
        found = metadata("hivepipe")
    except PackageNotFoundError:
        return ""
    return found["Version"] if "Version" in found else ""  # none without a METADATA file
