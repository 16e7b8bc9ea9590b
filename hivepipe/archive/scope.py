"""Decide which transcripts a home archives without an event from a hook.

The first line of a transcript names a folder. The transcript belongs to the home of the registered
project that contains this folder or the folder's main checkout. A transcript without a home is
archived only if the user told this home to follow its folder. A transcript of a project that was
switched off is never archived.
"""

import os

from hivepipe.archive.sources import default_folder
from hivepipe.errors import ArchiveError
from hivepipe.files.regular_file import regular
from hivepipe.home import make_folders, nearest_record, write_small

FOLLOWED = "followed-folders"
CLAUDE_FOLDERS = "claude-folders"


def may_take(home: str, cwd: str, followed: list[str]) -> bool:
    """Tell whether this home archives the transcripts of sessions that worked in this folder."""
    folder = os.path.realpath(cwd)
    _, record = nearest_record(folder)
    if record.get("state") == "off":
        return False
    if record.get("home"):
        return record["home"] == home
    return any(is_below(folder, each) for each in followed)


def is_below(folder: str, above: str) -> bool:
    """Tell whether a folder is `above` or inside it; every folder is inside `/`."""
    return folder == above or folder.startswith(f"{above.rstrip('/')}/")


def followed_folders(home: str) -> list[str]:
    """Return the folders that the user told this home to follow."""
    return _lines(home, FOLLOWED)


def follow(home: str, folder: str) -> None:
    """Let this home archive transcripts of sessions that worked in this folder.

    The folder need not exist, because Claude Code keeps transcripts elsewhere. Raises ArchiveError
    if it is a file, belongs to another home, or has a name with unprintable characters.
    """
    real = os.path.realpath(folder)
    if os.path.lexists(real) and not os.path.isdir(real):
        raise ArchiveError(f"{folder} is not a folder")
    if not real.isprintable():
        raise ArchiveError(f"{real!r} has characters that the list of folders cannot contain")
    owner = nearest_record(real)[1].get("home", home)
    if owner != home:
        raise ArchiveError(f"{real} has a home of its own: {owner}")
    _add(home, FOLLOWED, real)


def unfollow(home: str, folder: str) -> None:
    """Stop following a folder. Raises ArchiveError if it was not followed."""
    real = os.path.realpath(folder)
    left = followed_folders(home)
    if real not in left:
        raise ArchiveError(f"{real} is not followed")
    _write(home, FOLLOWED, [each for each in left if each != real])


def claude_folders(home: str, named: str = "") -> list[str]:
    """Return Claude Code's folders: the default folder, `named`, and the stored folders."""
    return list(
        dict.fromkeys(filter(None, (default_folder(), named, *_lines(home, CLAUDE_FOLDERS))))
    )


def remember_claude_folder(home: str, folder: str) -> None:
    """Store a folder of Claude Code for `claude_folders`, unless it is the default folder."""
    if folder and folder != default_folder():
        _add(home, CLAUDE_FOLDERS, folder)


def _lines(home: str, name: str) -> list[str]:
    try:
        path = f"{home}/{name}"
        with open(path, encoding="utf-8", errors="surrogateescape", opener=regular) as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def _add(home: str, name: str, line: str) -> None:
    lines = _lines(home, name)
    if line not in lines and line.isprintable():
        _write(home, name, [*lines, line])


def _write(home: str, name: str, lines: list[str]) -> None:
    make_folders(home)
    write_small(f"{home}/{name}", "".join(f"{line}\n" for line in lines))
