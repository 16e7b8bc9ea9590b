"""The folders that archives lie in: one for each kind, type of agent and month."""

import os
from collections.abc import Iterator

from hivepipe.folders import Folder


def remove_empty(base: str, *names: str) -> None:
    """Remove the innermost of these folders and those around it, as far as they are empty.

    Their names may say something of what was in them. Whoever makes a file there just now fails,
    and comes again.
    """
    for end in range(len(names), 0, -1):
        *outer, name = names[:end]
        with Folder(base, *outer) as folder:
            try:
                folder.remove_folder(name)
            except OSError:
                return


def month_folders(root: str) -> Iterator[tuple[str, ...]]:
    """Yield the names that lead to each folder of archives: main-session/2025-01, ..."""
    for names in (("main-session",), *(("subagent", name) for name in _inside(root, "subagent"))):
        for month in _inside(root, *names):
            yield (*names, month)


def _inside(root: str, *names: str) -> list[str]:
    """Return the real folders inside a folder; none where it is missing or a link."""
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
