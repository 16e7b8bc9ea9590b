"""`hivepipe uninstall`: plan all changes first, then make them."""

import os
from contextlib import suppress
from dataclasses import dataclass

from hivepipe.archive.index import FILE as ARCHIVE_INDEX
from hivepipe.archive.index import Index
from hivepipe.errors import StackError
from hivepipe.files import logs
from hivepipe.files.manifest import Manifest
from hivepipe.files.owner import another_owner
from hivepipe.home import (
    Place,
    default_home,
    kept_folder,
    locate,
    read_record,
    real_path,
)
from hivepipe.install import (
    claude_code,
    claude_plugin,
    edits,
    git_exclude,
    settings_text,
    users_folder,
    worktrees,
)
from hivepipe.install.claude_code import Scope
from hivepipe.install.claude_plugin import Plugin
from hivepipe.install.data import Data, data_of, holds_nothing
from hivepipe.install.holdings import Holdings, Left, bases_of, delete, holdings
from hivepipe.install.installation import without_hooks
from hivepipe.install.known_entries import is_edited
from hivepipe.install.restored_names import restore_names
from hivepipe.queue import endpoint
from hivepipe.stack import kernel, lifecycle, other_redis, registration, supervisor
from hivepipe.stack.last_home import last_home, unlink_renamed
from hivepipe.stack.project_records import records
from hivepipe.stack.registration import STATE_MODE
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import stack_processes


@dataclass(frozen=True)
class Removal:
    """The actions of `uninstall`, and what remains.

    settings   an edit for each settings file; later edits of the user are kept
    is_shared  whether other projects use this home. A shared home is kept.
    runs       whether the stack of this home is known to run
    plugin     the plugin whose hooks continue to run, or None
    copies     settings files in worktrees that contain the hooks and are not changed
    of_others  settings files with hooks that belong to other users and are not changed
    edited     settings files with a hook that was edited by hand. Such a hook is not removed.
    """

    place: Place
    settings: list[edits.Edit]
    excludes: list[edits.Edit]
    is_registered: bool
    is_shared: bool
    runs: bool
    data: list[Data]
    holds_nothing: bool
    holdings: Holdings
    sizes: list[tuple[str, int]]
    plugin: Plugin | None
    copies: list[str]
    of_others: list[Left]
    edited: list[str]

    @property
    def is_empty(self) -> bool:
        return not (self.settings or self.excludes or self.is_registered)


def plan(user: bool, *, purge: bool = False) -> Removal:
    """Return the plan to remove hivepipe from the current project, or to undo `init --user`.

    With `purge`, every file that would be deleted is examined, too.
    """
    place = _place(user)
    found = _settings_paths(place, user)
    settings = [edit for path in found if _is_ours(edit := _settings_edit(path, user))]
    is_shared = _is_shared(place)
    is_unused = not is_shared and holds_nothing(place)
    is_looked_at = is_unused or (purge and not is_shared)
    held = holdings(place) if is_looked_at else Holdings([], [])
    return Removal(
        place=place,
        settings=settings,
        excludes=_exclude_edits([path for path in found if not another_owner(path)]),
        is_registered=bool(read_record(place.project)) and not (user and is_shared),
        is_shared=is_shared,
        runs=_runs(place),
        data=[] if is_shared else data_of(place),
        holds_nothing=is_unused,
        holdings=held,
        sizes=held.sizes(),
        plugin=claude_plugin.switched_on(place.project, real_path(".")),
        copies=[] if user else _copies(place, found),
        of_others=_of_others(found),
        edited=[path for path in found if settings_text.file_has_entries(path, is_edited)],
    )


def _runs(place: Place) -> bool:
    """Tell whether the stack runs.

    Return False if the processes cannot be listed, because the removal must continue then.
    """
    with suppress(StackError):
        return bool(stack_processes(Stack.of(place)))
    return False


def _is_shared(place: Place) -> bool:
    """Tell whether other projects use this home."""
    if place.home == default_home() and place.project != place.home:
        return True  # every project without a record uses the default home
    mine = {path for path in (place.project, place.home) if read_record(path).get("home")}
    return len([1 for each in records() if each["home"] == place.home]) > len(mine)


def carry_out(removal: Removal, purge: bool) -> list[str]:
    """Remove the hooks, stop the stack and remove the records; return the renamed files that stay.

    The hooks are removed first, so that nothing restarts the stack. Renamed files get their old
    names back, except where a file of the user now has that name. The home's files are deleted if
    `purge` is set or the home holds no recorded data. Raise StackError if the stack cannot be
    stopped, or if another Redis does not answer or has unfinished jobs; the hooks are gone then,
    unless another container or machine runs the stack.
    """
    place = removal.place
    stack = Stack.of(place) if removal.is_registered and not removal.is_shared else None
    if purge:
        kernel.refuse_another(place.home)
    if stack:
        supervisor.refuse_unseen(stack)
    for edit in removal.settings:
        edits.undo(edit)
    for edit in removal.excludes:
        git_exclude.undo(edit)
    if stack:
        lifecycle.take_down(stack)
        _clear_foreign_redis(place, purge)
    # Look again, because an event may have come since `plan`.
    is_over = purge or (removal.holds_nothing and holds_nothing(place))
    bases = bases_of(place)
    own = holdings(place).own if is_over else []
    refused = [] if removal.is_shared else _restore_names(place, own)
    delete(own, bases if is_over else [])
    if is_over:
        unlink_renamed(place.project)
    registration.forget(place.project, place.home)  # the steps above read the record
    users_folder.tidy()
    return refused


def _restore_names(place: Place, own: list[str]) -> list[str]:
    """Rename files back and drop them from `own`; return the files that could not be renamed."""
    kept, manifest = kept_folder(place.home), Manifest(place.home)
    before = manifest.renamed()
    if (mode := manifest.fact(STATE_MODE)) and os.path.isdir(os.path.dirname(kept)):
        os.chmod(os.path.dirname(kept), int(mode, 8))
    if not os.path.isdir(kept) or os.path.islink(kept) or os.path.islink(os.path.dirname(kept)):
        return []
    if not own and ARCHIVE_INDEX in before:
        Index(kept, manifest).move_to_journal()
    refused = restore_names(kept, manifest, place.home)
    given = {f"{kept}/{name}" for name in before if name not in refused}
    own[:] = [path for path in own if path not in given]
    if own:
        own += [path for name in logs.NAMES if os.path.exists(path := f"{place.home}/logs/{name}")]
    return [f"{kept}/{name}" for name in refused]


def _clear_foreign_redis(place: Place, purge: bool) -> None:
    """Remove hivepipe's keys from a foreign Redis.

    Raise StackError if it does not answer, or has unfinished jobs and `purge` is not set.
    """
    stack = Stack.of(place)
    owner = read_record(place.project).get("owner", "")
    if stack.url and not other_redis.release(stack.url, owner, with_jobs=purge):
        raise StackError(
            f"{endpoint.shown(stack.url)} does not answer, or has unfinished jobs "
            "(`hivepipe up -d` runs them, --purge drops them)"
        )


def _place(user: bool) -> Place:
    """Return the place as recorded, because the variable HIVEPIPE_HOME may name another home."""
    project = default_home() if user else locate(".").project
    record = read_record(project)
    home = project if user else record.get("home") or last_home(project)
    return Place(project, home, record)


def _settings_paths(place: Place, user: bool) -> list[str]:
    """Return the settings files that hivepipe changed for this place or that may have hooks."""
    changed = [found.path for found in edits.manifests() if found.project == place.project]
    if user:
        return claude_code.one_of_each_file([*changed, claude_code.settings_path(Scope.USER, "")])
    found = [
        path
        for folder in (place.project, real_path("."))
        for scope in (Scope.LOCAL, Scope.PROJECT)
        if claude_code.is_inside(path := claude_code.settings_path(scope, folder), folder)
    ]
    copies = worktrees.local_copies(place.project)
    return claude_code.one_of_each_file([*changed, *found, *copies])


def _copies(place: Place, known: list[str]) -> list[str]:
    real = {os.path.realpath(path) for path in known}
    found = worktrees.settings_with_hooks(place.project)
    return [path for path in found if os.path.realpath(path) not in real]


def _of_others(paths: list[str]) -> list[Left]:
    owners = [(path, another_owner(path)) for path in paths if settings_text.file_has_entries(path)]
    return [Left(path, f"it belongs to {owner}") for path, owner in owners if owner]


def _settings_edit(path: str, user: bool) -> edits.Edit:
    """Return the edit of a settings file.

    The file of another user is not changed. A link out of the project is not changed either,
    because a branch may have brought the link after `init`.
    """
    is_own = not another_owner(path) and (user or not is_link_outside(path))
    return without_hooks(path) if is_own else edits.Edit(path, None, None)


def is_link_outside(path: str) -> bool:
    """Tell whether a settings file of a project is a link out of the project."""
    project = os.path.realpath(os.path.dirname(os.path.dirname(path)))
    return not claude_code.is_inside(path, project)


def _is_ours(edit: edits.Edit) -> bool:
    return edit.after != edit.before or edits.manifest_of(edit.path) is not None


def _exclude_edits(settings: list[str]) -> list[edits.Edit]:
    """Return the edits that remove hivepipe's lines from git's exclude files."""
    lines: dict[str, set[str]] = {}
    for path in settings:
        exclude = git_exclude.exclude_file(path)
        if exclude and os.path.exists(exclude) and not another_owner(exclude):
            lines.setdefault(exclude, set()).add(git_exclude.line_for(path))
    found = (git_exclude.to_stop_ignoring(exclude, ours) for exclude, ours in lines.items())
    return [edit for edit in found if edit]
