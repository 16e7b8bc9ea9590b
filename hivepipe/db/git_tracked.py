"""Refuses a database that git tracks, because another person's commit could replace it.

The database's logs are refused, too. SQLite writes the content of any `hive.db-wal` or
`hive.db-journal` into the database beside it. After that, the header still identifies the database
as hivepipe's.
"""

import shlex
from pathlib import Path

from hivepipe import git
from hivepipe.db.location import SUFFIXES
from hivepipe.errors import StoreError, TreeError
from hivepipe.home import IN_PROJECT

_LOGS = SUFFIXES[1:]


def refuse_tracked(path: Path) -> None:
    """Raise StoreError if git tracks the database or its logs, or if git cannot be asked."""
    tree, found, name = str(path).rpartition(f"{IN_PROJECT}/")
    if not tree or not found or "/" in name:
        return
    try:
        tracked = git.tracked_files(tree, *(f".{found}{name}{suffix}" for suffix in SUFFIXES))
    except TreeError as error:
        raise StoreError(str(error)) from error
    if tracked:
        text, command = refusal(tree, tracked)
        raise StoreError(f"{text}. Look at it, then: {command}")


def refusal(tree: str, tracked: list[str]) -> tuple[str, str]:
    """Return the error text for tracked files, and the command that fixes it."""
    remove = f"git -C {shlex.quote(tree)} rm"
    for name in tracked:
        if name.endswith(_LOGS):
            text = (
                f"git tracks {name}: SQLite would apply what others commit there to your database"
            )
            return f"{text} (your own stays there by `rm --cached`)", f"{remove} -f {name}"
    text = f"git tracks {tracked[0]}: commits of others there would count as your data"
    return text, f"{remove} -r --cached --ignore-unmatch .hive-mind .claude-state/logs"
