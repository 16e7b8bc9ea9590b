"""The installed version on disk, which an upgrade changes under a running process."""

from importlib.metadata import PackageNotFoundError, metadata


def installed() -> str:
    """Return the installed version, or "" in the middle of an upgrade."""
    try:
        found = metadata("hivepipe")
    except PackageNotFoundError:
        return ""
    # Without a METADATA file there is no version.
    return found["Version"] if "Version" in found else ""  # noqa: SIM401  the type has no `get`
