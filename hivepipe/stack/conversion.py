"""A home of 1.0.0, which lies in its project's work tree: what is believed or executed moves out.

Database, archives and exports stay where they are. Everything else is copied to the home outside
the tree; then the records name that one; then the old files are deleted. A kill before the records
change leaves the old home as it was; after it the next start goes on where the last one ended.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from hivepipe.home import (
    home_of_project,
    is_in_project,
    kept_folder,
    read_record,
    real_path,
    tree_of,
)
from hivepipe.ownership.manifest import Manifest
from hivepipe.queues.spool import LOST, NOTES
from hivepipe.regular_file import read_bytes
from hivepipe.stack import kernel, supervisor
from hivepipe.stack.copying import copy_file
from hivepipe.stack.home_files import why_not_ours
from hivepipe.stack.lock import Stack, locked_folder, make_private, remove_runtime
from hivepipe.stack.registration import left_old_home, move_records, records, take_folders
from hivepipe.stack.tree import refuse_shipped

SETTINGS = ("config.toml", "prices.toml")  # a person's, and believed
_MADE_ANEW = ("environment", "hook-settings.json", "kernel", "redaction.key", "redis.lock")
_OF_HOOKS = ("spool/", "instances/", NOTES, LOST)  # written while we move
_HOOK_LOG = "hook-errors.log"
TURN_SECS = supervisor.READY_SECS + supervisor.STOP_SECS + 10


def converted(stack: Stack) -> Stack:
    """Return the stack of a home outside the tree; one of 1.0.0 is ended and converted for that.

    TreeError: git tracks what lies in the tree, or a folder of it is a link.
    """
    old = stack.home
    if is_in_project(old) and os.path.isdir(old):
        new = _new_home(tree_of(old))
        with locked_folder(old, TURN_SECS):
            if any(record["home"] == old for record in records()):
                _move_out(stack, new)
        stack = Stack.prepared(new)
    _finish(stack.home)
    return stack


def _new_home(project: str) -> str:
    new = home_of_project(project)
    make_private(new)
    return real_path(new)


def _move_out(stack: Stack, new: str) -> None:
    old, tree = stack.home, tree_of(stack.home)
    kernel.refuse_another(old)
    refuse_shipped(tree)
    supervisor.stop(stack)
    for name in _moving(old):
        if not name.startswith(_OF_HOOKS) and name not in _MADE_ANEW:
            copy_file(f"{old}/{name}", f"{new}/{name}")
    move_records(old, Stack.prepared(new)._replace(url=stack.url), tree)
    remove_runtime(stack)


def _finish(home: str) -> None:
    """Take what hooks have written into the old home meanwhile, and delete what was copied."""
    old = read_record(home).get("was", "")
    if not old:
        return
    for name in _moving(old):
        if name.startswith(_OF_HOOKS):
            _take(f"{old}/{name}", home, name)
        os.unlink(f"{old}/{name}")
    for folder, _, _ in os.walk(old, topdown=False):
        if folder != old:
            with suppress(OSError):  # a person's file is in it
                os.rmdir(folder)
    with suppress(FileNotFoundError):
        _take(f"{kept_folder(old)}/{_HOOK_LOG}", home, f"logs/{_HOOK_LOG}")
        os.unlink(f"{kept_folder(old)}/{_HOOK_LOG}")
    take_folders(tree_of(home), Manifest(home))
    left_old_home(home)


def _take(path: str, home: str, name: str) -> None:
    """Copy what a hook wrote; what is there already came from a hook that was later."""
    if name == LOST:
        with open(f"{home}/{name}", "ab") as new:
            new.write(read_bytes(path))
        return
    if name == NOTES:
        name = f"{name}.{os.lstat(path).st_mtime_ns:020d}"
    if not os.path.lexists(f"{home}/{name}"):
        copy_file(path, f"{home}/{name}")


def _moving(old: str) -> Iterator[str]:
    """Yield the files that move, by their names in the home: hivepipe's, and the settings."""
    for folder, _, names in os.walk(old):
        for name in (os.path.relpath(f"{folder}/{each}", old) for each in sorted(names)):
            stays = name == ".gitignore" or name.startswith(("hive.db", "backups/hive-before-"))
            if name in SETTINGS or not (stays or why_not_ours(old, name)):
                yield name
