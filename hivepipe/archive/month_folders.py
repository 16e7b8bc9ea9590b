"""The folders of archives: one for each kind, agent type and month."""

import os
from collections.abc import Iterator

from hivepipe.files.folders import Folder


def remove_empty(base: str, *names: str) -> None:
    """Remove these nested folders, the innermost first, until one is not empty.

    The names of the folders may reveal something about the deleted content. A process that is
    making a file in a removed folder fails and tries again.
    """
    for end in range(len(names), 0, -1):
        *outer, name = names[:end]
        with Folder(base, *outer) as folder:
            try:
                folder.remove_folder(name)
            except OSError:
                return


def month_folders(root: str) -> Iterator[tuple[str, ...]]:
    """Yield the path segments of each folder of archives: main-session/2025-01, ..."""
    for names in (("main-session",), *(("subagent", name) for name in _inside(root, "subagent"))):
        for month in _inside(root, *names):
            yield (*names, month)


def _inside(root: str, *names: str) -> list[str]:
    """Return the folders inside a folder, without links. Return [] if it is missing or a link."""
    try:
        with Folder(root, *names) as folder:
            found = folder.names()
    except OSError:
        return []
    path = "/".join((root, *names))
    return [
        name
        for name in found
        if os.path.isdir(f"{path}/{name}") and not os.path.islink(f"{path}/{name}")
    ]
