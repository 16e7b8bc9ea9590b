"""The installed version on disk, which an upgrade changes under a running process."""

import os
import sys

_BEGIN, _END = "hivepipe-", ".dist-info"


def installed() -> str:
    """Return the installed version, or "" in the middle of an upgrade or without an installation.

    `importlib.metadata` would parse all metadata: each forked worker would copy 2 MB for that.
    """
    for folder in sys.path:
        for name in _names(folder):
            if name.startswith(_BEGIN) and name.endswith(_END):
                is_whole = os.path.exists(f"{folder}/{name}/METADATA")
                return name[len(_BEGIN) : -len(_END)] if is_whole else ""
    return ""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # a zip file, or a missing folder
        return []
