"""`hivepipe move-home`: moves data into or out of a work tree, or to a renamed project."""

import os
import sys
from contextlib import suppress
from secrets import token_hex

from hivepipe.db.location import database_path, files_of_database
from hivepipe.db.tree import mark, recorded_tree, refuse_shipped, replaced
from hivepipe.errors import TreeError
from hivepipe.files.manifest import SESSION_FILE, Manifest
from hivepipe.files.regular_file import read_bytes
from hivepipe.home import (
    IN_PROJECT,
    KEPT_IN_PROJECT,
    kept_folder,
    locate,
    read_record,
    read_small,
    real_path,
    tree_of,
)
from hivepipe.install import edits
from hivepipe.install.data import holds_nothing
from hivepipe.install.early_events import take_early_events
from hivepipe.install.export_files import ExportFiles
from hivepipe.install.restored_names import restore_names
from hivepipe.stack import lifecycle, registration
from hivepipe.stack.data_move import Move
from hivepipe.stack.home_files import has_own_ignore
from hivepipe.stack.last_home import last_home, link_renamed
from hivepipe.stack.registration import IGNORE_ALL, claim_folders
from hivepipe.stack.runtime_folder import Stack

_BESIDE = "../.gitignore"


def move_home(project: str, stack: Stack, tree: str) -> list[str]:
    """Move the data of a home; return the files that stay because hivepipe did not write them.

    `tree` is the target project, or "" for the home itself. The stack is stopped during the move.
    Raises TreeError, StoreError, RegistrationError or OSError.
    """
    with lifecycle.stopped(project, stack) as stopped:
        home = stopped.home
        source, manifest = tree_of(home), Manifest(home)
        if source == tree:
            return []
        refuse_shipped(tree or source)
        if trouble := replaced(home):
            raise TreeError(trouble)
        if tree:
            registration.text_of({**read_record(home), "tree": tree})  # refused now if too long
            claim_folders(tree, manifest)
        found = list(ExportFiles(kept_folder(home), manifest).files())
        kept = kept_folder(home)
        own = [os.path.relpath(path, kept) for path, why in found if not why]
        names = [name for name in own if name != ".gitignore"]
        database = files_of_database(database_path(home))
        Move(home, source, tree, names, database, token_hex(16)).carry_out()
        if tree and database_path(home).exists():
            mark(home, database_path(home))
        if source:
            _clean_tree(source, home, manifest)
        return [path for path, why in found if why]


def adopt_old_home(project: str, old: str) -> str:
    """Register a renamed project with the home of its old path; return that home.

    Raise TreeError if the old path still exists or has no home, or the new one has data.
    """
    # A link at the old path that leads to the new path is allowed.
    if old == project or (os.path.isdir(old) and real_path(old) != project):
        raise TreeError(f"{old} still exists, so its home cannot be used for another project")
    home = read_record(old).get("home") or last_home(old)
    if not os.path.isdir(home):
        raise TreeError(
            f"nothing was recorded for {old}; if {project} has a `.hive-mind` of yours, run "
            "`hivepipe init --adopt`"
        )
    place = locate(project)
    if read_record(project).get("home") not in (None, home) and not holds_nothing(place):
        raise TreeError(
            f"{project} already has data in {place.home}: run `hivepipe uninstall` first; the data "
            "stays there"
        )
    stack = Stack.prepared(home)
    with lifecycle.at_rest(stack, old, project):
        of_home = read_record(home)  # its field `tree` names the work tree that has the data now
        # Only a project can be off. The stack may be down.
        is_off = read_record(old).get("state") == "off"
        state = "off" if is_off else of_home.get("state", "on")
        is_moved = of_home.get("tree") in (old, project)
        tree = project if is_moved else recorded_tree(project, home)
        registration.register(project, stack, sys.executable, state, adopt=True, tree=tree)
        edits.follow_rename(old, project)
        registration.forget(old, home)
        if registration.is_of_one_project(home):
            link_renamed(project, old, home)
    take_early_events(project, home)
    return home


def _clean_tree(tree: str, home: str, manifest: Manifest) -> None:
    """Remove hivepipe's files from a work tree, and give renamed files their names back."""
    kept = f"{tree}{KEPT_IN_PROJECT}"
    if os.path.isdir(kept) and not os.path.islink(kept):
        restore_names(kept, manifest, home)
    session = os.path.normpath(f"{kept}/{SESSION_FILE}")
    with suppress(OSError):  # the file is missing
        if manifest.wrote(SESSION_FILE, read_bytes(session)):
            os.unlink(session)
            manifest.disown(SESSION_FILE)
    for name in (_BESIDE, ".gitignore"):
        path = os.path.normpath(f"{kept}/{name}")
        if manifest.made_at(name) is not None and read_small(path) == IGNORE_ALL:
            os.unlink(path)
            manifest.disown(name)
    if has_own_ignore(f"{tree}{IN_PROJECT}"):
        os.unlink(f"{tree}{IN_PROJECT}/.gitignore")
    for folder in (kept, os.path.dirname(kept), f"{tree}{IN_PROJECT}"):
        edits.remove_if_empty(folder)
