"""Convert a home of version 1.0.0, which is in its project's work tree.

Database, archives and exports stay where they are, unless 1.0.0 was installed again after
`move-home` had moved them out. Only a database in the state folder is moved. First all other files
are copied to a home outside the tree. Then the records are changed to name the new home. Finally,
the old files are deleted. If a crash comes before the records change, the old home is unchanged.
After a later crash, the next start finishes the conversion.
"""

import filecmp
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hivepipe.db.listings import is_unused
from hivepipe.db.location import SUFFIXES, database_in, files_of_database
from hivepipe.db.tree import refuse_shipped
from hivepipe.errors import TreeError
from hivepipe.files.manifest import Manifest
from hivepipe.files.regular_file import read_bytes
from hivepipe.home import (
    is_in_project,
    kept_folder,
    read_record,
    tree_of,
)
from hivepipe.queue.all_jobs import spool_jobs
from hivepipe.queue.connection import connect
from hivepipe.queue.spool import LOST, NOTES
from hivepipe.stack import kernel, supervisor
from hivepipe.stack.copying import copy_file, sync, sync_folders
from hivepipe.stack.home_files import why_not_ours
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.project_records import records, records_folder
from hivepipe.stack.registration import change_records, claim_folders, move_records, new_home
from hivepipe.stack.runtime_folder import Stack, make_private, remove_runtime
from hivepipe.stack.temporary_redis import has_file, server_of_locked

SETTINGS = ("config.toml", "prices.toml")  # edited by users, and trusted
_REGENERATED = ("environment", "hook-settings.json", "kernel", "redaction.key", "redis.lock")
_OF_REDIS = "append"
_OF_HOOKS = ("spool/", "instances/", NOTES, LOST)  # hooks may write these during the conversion
_HOOK_LOG = "hook-errors.log"
# Longer than the slowest start plus the slowest stop, because another command may hold the lock.
TURN_SECS = supervisor.READY_SECS + supervisor.STOP_SECS + 10


def converted(stack: Stack) -> Stack:
    """Return the stack of a home outside the tree; first convert a home of version 1.0.0.

    Raise TreeError if git tracks the data in the tree, if a folder of the data is a link, or if the
    home outside has other sessions.
    """
    old = stack.home
    if is_in_project(old) and os.path.isdir(old):
        new = new_home(tree_of(old))
        make_private(new)
        with locked_folder(old, TURN_SECS):
            if any(record["home"] == old for record in records()):
                _move_out(stack, new)
        stack = Stack.prepared(new)
    _finish(stack.home)
    return stack


def _move_out(stack: Stack, new: str) -> None:
    old, project = stack.home, tree_of(stack.home)
    kernel.refuse_another(old)
    refuse_shipped(project)
    tree_with_data(old, new)  # refused while the stack still runs
    supervisor.stop(stack)
    tree = tree_with_data(old, new)
    names = [name for name in _moving(old) if not name.startswith(_OF_HOOKS)]
    names = [name for name in names if name not in _REGENERATED]
    if has_file(old) and _has_other_jobs(new, old):
        with server_of_locked(stack) as address, connect(address) as client:
            spool_jobs(client, f"{new}/spool")
        os.sync()  # a power cut may come after the file of Redis is deleted
        names = [name for name in names if not name.startswith(_OF_REDIS)]
    for name in names:
        copy_file(f"{old}/{name}", f"{new}/{name}")
    sync_folders(f"{new}/{name}" for name in names)
    move_records(old, Stack.prepared(new)._replace(url=stack.url), tree)
    sync(records_folder())
    remove_runtime(stack)


def tree_with_data(old: str, new: str) -> str:
    """Return the project, or "" if only the database outside its work tree has sessions.

    Raise TreeError if both have some.
    """
    project = tree_of(old)
    inside = database_in(old, project)
    for tree in (project, ""):
        outside = database_in(new, tree)
        if outside != inside and _has_sessions(outside):
            if _has_sessions(inside):
                text = f"{inside} and {outside} both have sessions"
                raise TreeError(f"{text}: move one of the two away, with its -wal")
            return tree
    return project


def _has_sessions(database: Path) -> bool:
    return database.exists() and not is_unused(database)


def _has_other_jobs(new: str, old: str) -> bool:
    """Tell whether the files of Redis in the new home differ from those in the old home.

    The files differ if 1.0.0 was installed again after an upgrade. The files are equal after an
    interrupted conversion.
    """
    here = Path(new)
    found = [*here.glob(f"{_OF_REDIS}*"), *here.glob(f"{_OF_REDIS}*/*")]
    files = [path for path in found if path.is_file() and path.suffix != ".moving"]
    try:
        return not all(filecmp.cmp(path, Path(old, path.relative_to(here))) for path in files)
    except FileNotFoundError:
        return True


def _finish(home: str) -> None:
    """Copy files that hooks wrote to the old home during the conversion; delete the old files."""
    old = read_record(home).get("was", "")
    if not old:
        return
    _move_database(database_in(old, tree_of(old)), database_in(home, tree_of(home)))
    for name in _moving(old):
        if name.startswith(_OF_HOOKS):
            _copy_late_file(f"{old}/{name}", home, name)
        os.unlink(f"{old}/{name}")
    for folder, _, _ in os.walk(old, topdown=False):
        if folder != old:
            with suppress(OSError):  # the folder contains a file of the user
                os.rmdir(folder)
    with suppress(FileNotFoundError):
        _copy_late_file(f"{kept_folder(old)}/{_HOOK_LOG}", home, f"logs/{_HOOK_LOG}")
        os.unlink(f"{kept_folder(old)}/{_HOOK_LOG}")
    if tree := tree_of(home):
        claim_folders(tree, Manifest(home))
    change_records({home}, was="")


def _move_database(old: Path, new: Path) -> None:
    """Move a database whose path depends on its home's: that of a shared file system."""
    if old == new or not _has_sessions(old) or _has_sessions(new):
        return
    for suffix in SUFFIXES if new.exists() else ():
        Path(f"{new}{suffix}").unlink(missing_ok=True)
    for name in reversed(files_of_database(old)):  # its main file last: a crash may come between
        if os.path.lexists(old.parent / name):
            make_private(os.path.dirname(new.parent / name))
            os.rename(old.parent / name, new.parent / name)
    for folder in (old.parent / "backups", old.parent):
        with suppress(OSError):  # it is missing or not empty
            folder.rmdir()


def _copy_late_file(path: str, home: str, name: str) -> None:
    """Copy a file that a hook wrote. An existing target stays, because it is newer.

    Lost events are appended to the target, and call notes get a new name.
    """
    if name == LOST:
        with open(f"{home}/{name}", "ab") as new:
            new.write(read_bytes(path))
        return
    if name == NOTES:
        name = f"{name}.{os.lstat(path).st_mtime_ns:020d}"
    if not os.path.lexists(f"{home}/{name}"):
        copy_file(path, f"{home}/{name}")


def _moving(old: str) -> Iterator[str]:
    """Yield the files to move, relative to the home: hivepipe's files and the settings."""
    for folder, _, names in os.walk(old):
        for name in (os.path.relpath(f"{folder}/{each}", old) for each in sorted(names)):
            stays = name == ".gitignore" or name.startswith(("hive.db", "backups/hive-before-"))
            if name in SETTINGS or not (stays or why_not_ours(old, name)):
                yield name
