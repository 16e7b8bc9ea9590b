"""Check that the data of a home in a project's work tree was not replaced.

Git overwrites and deletes files that it ignores, and a branch can contain files of these names. So
no file that is trusted or executed is in the tree. The database and the home's manifest, which is
outside the tree, contain the same number (SQLite's application_id).

A database is also refused if git tracks it or its logs. SQLite writes the content of any
`hive.db-wal` or `hive.db-journal` into the database beside it, and the header still identifies the
database as hivepipe's.
"""

import os
import shlex
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from secrets import randbelow

from hivepipe import git
from hivepipe.db.location import SUFFIXES, database_in, database_path
from hivepipe.errors import StoreError, TreeError
from hivepipe.files.manifest import Manifest
from hivepipe.files.regular_file import regular
from hivepipe.files.sqlite_file import open_to_write
from hivepipe.home import IN_PROJECT, KEPT_IN_PROJECT, make_folders, tree_of
from hivepipe.settings import variable

MARK_SECS = 10.0
_LOGS = SUFFIXES[1:]
_NUMBER = "database"  # name of the number in the manifest
_FOLDERS = (IN_PROJECT, KEPT_IN_PROJECT.rpartition("/")[0], KEPT_IN_PROJECT)


def refuse_replaced(home: str) -> None:
    """Raise TreeError if this home's data was replaced, or if git tracks it.

    Raise StoreError if a missing database cannot be created.
    """
    if tree := tree_of(home):
        refuse_shipped(tree)
        prepare(home)


def prepare(home: str) -> int:
    """Return the number that a new database of this home gets, or 0 outside a work tree.

    A home without a number gets one, and its database is created if it is missing. Raise
    TreeError if the data was replaced, StoreError if the database cannot be created.
    """
    if not tree_of(home) or variable("HIVEPIPE_DB"):
        return 0
    if trouble := replaced(home):
        raise TreeError(trouble)
    if not Manifest(home).fact(_NUMBER):
        mark(home, database_path(home))
    return int(Manifest(home).fact(_NUMBER))


def replaced(home: str) -> str:
    """Return a message if another file or a link replaced the home's data, else ""."""
    tree = tree_of(home)
    for name in _FOLDERS if tree else ():
        if os.path.islink(f"{tree}{name}"):
            return f"{tree}{name} is a link, which is not followed: remove it"
    path, number = database_path(home), Manifest(home).fact(_NUMBER)
    if not (tree and number) or _is_empty(path):
        return ""
    if path.is_file() and _number_of(path) == int(number):
        return ""
    return (
        f"{path} is not the database that hivepipe used here. Put that database back; or move this "
        "one away, then hivepipe begins with an empty one"
    )


def _is_empty(path: Path) -> bool:
    """Tell whether the database is missing or has 0 bytes."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return True
    return stat.S_ISREG(status.st_mode) and not status.st_size


def recorded_tree(project: str, home: str) -> str:
    """Return the project if its work tree has this home's database, else "".

    The database is recognised by its number, so the home's record need not name the tree.
    """
    number = Manifest(home).fact(_NUMBER)
    path = database_in(home, project)
    is_there = number and path.is_file() and not path.is_symlink()
    return project if is_there and str(_number_of(path)) == number else ""


def refuse_shipped(tree: str) -> None:
    """Raise TreeError if hivepipe's folders in `tree` include a link or files that git tracks."""
    for name in _FOLDERS:
        if os.path.islink(f"{tree}{name}"):
            raise TreeError(f"{tree}{name} is a link, which is not followed: remove it")
    tracked = git.tracked_files(tree, IN_PROJECT.strip("/"), KEPT_IN_PROJECT.strip("/"))
    # A .gitignore is never trusted, so git may track it.
    found = [name for name in tracked if not name.endswith("/.gitignore")]
    if found:
        text, command = refusal(tree, found)
        raise TreeError(f"{text}. Look at it, then run `{command}`")


def mark(home: str, path: Path) -> None:
    """Write this home's number into its database, which is created if it is missing.

    The first page of a new database contains the number. SQLite deletes the log that an earlier
    database left beside it. Raise StoreError if the database cannot be used.
    """
    manifest = Manifest(home)
    try:
        manifest.begin()
        manifest.remember(_NUMBER, str(1 + randbelow(2**31 - 1)))
        number = int(manifest.fact(_NUMBER))
        make_folders(str(path.parent))
        with closing(open_to_write(path, MARK_SECS)) as db:
            if db.execute("PRAGMA application_id").fetchone()[0] != number:
                db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # this only affects an empty database
                db.execute(f"PRAGMA application_id = {number}")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # `_number_of` reads the file itself
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path} cannot be used: {error}") from error


_opened: dict[tuple[int, int], int] = {}  # device and inode -> descriptor


def _number_of(path: Path) -> int:
    """Return SQLite's application_id: bytes 68 to 71 of the file.

    The file stays open. By POSIX, closing it would drop the locks that connections of this process
    have on it. Another process would then delete the -wal in use.
    """
    status = os.stat(path)
    file = (status.st_dev, status.st_ino)
    if file not in _opened:
        _opened[file] = regular(str(path), os.O_RDONLY | os.O_CLOEXEC)
    return int.from_bytes(os.pread(_opened[file], 4, 68), "big")


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
        raise StoreError(f"{text}. Look at it, then run `{command}`")


def refusal(tree: str, tracked: list[str]) -> tuple[str, str]:
    """Return the error text for files that git tracks, and the command that solves it."""
    remove = f"git -C {shlex.quote(tree)} rm"
    for name in tracked:
        if name.endswith(_LOGS):
            text = (
                f"git tracks {name}: SQLite would apply what others commit there to your database"
            )
            return f"{text} (if the file is yours, use `--cached`, not `-f`)", f"{remove} -f {name}"
    text = f"git tracks {tracked[0]}: commits of others there would count as your data"
    return text, f"{remove} -r --cached --ignore-unmatch .hive-mind .claude-state/logs"
