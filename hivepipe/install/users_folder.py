"""The user's state folder: made by the first `init`, removed with the last registered project."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hivepipe.errors import HivepipeError, LockHeldError, SettingsError
from hivepipe.home import data_folder, read_small, state_folder, user_folder, write_small
from hivepipe.install.edits import locked, missing_folders, remove_if_empty
from hivepipe.settings import variable
from hivepipe.stack import shared_page
from hivepipe.stack.runtime_folder import Stack, make_private

_MADE = "made"  # file with the folders above it that hivepipe made, one per line, outermost first


def make() -> None:
    """Make the state folder, and record which parent folders had to be made.

    Raise SettingsError if it cannot be made or written.
    """
    trouble = unusable_state_folder()
    if trouble:
        raise SettingsError(f"{trouble}; nothing was changed")
    note = f"{state_folder()}/{_MADE}"
    missing = [*missing_folders(note), *missing_folders(f"{data_folder()}/projects")]
    make_private(state_folder())
    known = read_small(note).splitlines()
    if set(missing) - set(known):
        write_small(note, "".join(f"{path}\n" for path in dict.fromkeys([*known, *missing])))


def unusable_state_folder() -> str:
    """Return why the state folder cannot be made, written, or named in settings, or ""."""
    try:
        state_folder().encode()
    except UnicodeEncodeError:
        return (
            f"{state_folder()} is not UTF-8, so Claude Code could not run the hooks in it: "
            "set XDG_STATE_HOME to another folder"
        )
    for folder in (Path(state_folder()), Path(data_folder())):
        if is_read_only(folder):
            return f"hivepipe keeps its records in {folder}, whose file system is read-only here"
        there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            named = f"HOME is {home}" if (home := variable("HOME")) else "HOME is not set"
            why = "cannot be written" if there.is_dir() else "is not a folder"
            return (
                f"hivepipe keeps its records in {folder}, and {there} {why} ({named}): "
                "set HOME, or XDG_STATE_HOME and XDG_DATA_HOME, to a folder of yours"
            )
    return ""


def is_read_only(folder: str | Path) -> bool:
    """Tell whether a folder is on a read-only file system, as in Claude's sandboxed Bash.

    A missing folder counts only in an existing HOME, because another HOME may be wrong.
    """
    there = next(path for path in (Path(folder), *Path(folder).parents) if os.path.isdir(path))
    if there != Path(folder) and not there.is_relative_to(user_folder() or folder):
        return False
    return bool(os.statvfs(there).f_flag & os.ST_RDONLY)


@contextmanager
def removed_if_refused(stack: Stack) -> Iterator[None]:
    """Remove the empty folders that were made for a home if its registration is refused."""
    try:
        yield
    except (HivepipeError, OSError):
        for folder in (stack.folder, os.path.dirname(stack.folder)):
            remove_if_empty(folder)
        tidy()
        raise


def tidy() -> None:
    """Remove the state folder, with the parents made for it, if it has no data of a project."""
    # `init` may write the hooks at this moment. If it takes long, the folder simply stays.
    with suppress(FileNotFoundError, LockHeldError), locked():
        _tidy()


def _tidy() -> None:
    for folder in (f"{data_folder()}/projects", data_folder()):
        remove_if_empty(folder)
    for name in ("projects", "changed", "databases", "default", "migrated", "hives"):
        remove_if_empty(f"{state_folder()}/{name}")
    if not os.path.lexists(f"{state_folder()}/projects"):  # no project is left
        shutil.rmtree(f"{state_folder()}/hooks", ignore_errors=True)
        for name in shared_page.FILES:
            Path(state_folder(), name).unlink(missing_ok=True)
    note = f"{state_folder()}/{_MADE}"
    made = read_small(note).splitlines() or [state_folder()]
    is_empty = os.listdir(state_folder()) in ([], [_MADE])
    if not is_empty or os.path.lexists(f"{data_folder()}/projects"):
        return
    Path(note).unlink(missing_ok=True)
    for folder in reversed(made):
        remove_if_empty(folder)
