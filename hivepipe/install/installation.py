"""`hivepipe init`: plan all changes first, then make them."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace

from hivepipe.db.location import database_path
from hivepipe.errors import SettingsError
from hivepipe.files.regular_file import read_text
from hivepipe.home import (
    Place,
    absolute,
    default_home,
    is_in_project,
    main_checkout,
    read_record,
    real_path,
    user_folder,
)
from hivepipe.install import (
    claude_code,
    claude_plugin,
    edits,
    git_exclude,
    settings_text,
    status_line,
    users_folder,
)
from hivepipe.install.claude_code import Scope
from hivepipe.install.claude_plugin import Plugin
from hivepipe.install.early_events import take_early_events
from hivepipe.install.hook_entries import (
    CODEX_EVENTS,
    Event,
    Form,
    Version,
    entries_of,
    events_of,
    form_for,
)
from hivepipe.install.renamed import refuse_renamed
from hivepipe.settings import variable
from hivepipe.stack import hook_copy, kernel, lifecycle, registration
from hivepipe.stack.environment import record_environment
from hivepipe.stack.runtime_folder import Stack


@dataclass(frozen=True)
class Plan:
    """The actions of `init`.

    `exclude` is the edit that keeps the settings file out of git, if needed.

    plugin  the plugin that runs the hooks, so that the settings must not contain them
    tree    the project whose work tree has the database, archives and exports, or ""
    claude  the version of Claude Code whose events get hooks, or None if unknown
    """

    project: str
    home: str
    form: Form
    settings: edits.Edit
    exclude: edits.Edit | None
    is_committed: bool
    plugin: Plugin | None = None
    tree: str = ""
    claude: Version | None = None

    @property
    def changes(self) -> list[edits.Edit]:
        """Return the edits that change a file."""
        both = [self.settings, *([self.exclude] if self.exclude else [])]
        return [edit for edit in both if edit.after != edit.before]


def plan(
    scope: Scope, *, adopt: bool = False, in_tree: bool = False, with_line: bool = False
) -> Plan:
    """Return the plan of `init` for the current folder.

    adopt      use an existing 1.0.0 home or database in the project
    in_tree    keep the data in the project
    with_line  also set the status line; otherwise only an existing line of hivepipe is updated, and
               none in shared settings

    Raises SettingsError if the settings cannot be changed.
    """
    here = real_path(".")
    path = claude_code.settings_path(scope, here)
    if scope is not Scope.USER:
        _refuse_home_folder(here)
        _refuse_link_outside(path, here)
    project, home = _project_and_home(scope, here, adopt=adopt)
    registration.refuse_broken_line(project, home)
    tree = _tree(project, home, in_tree=in_tree, adopt=adopt)
    claude = claude_code.version()
    form = _form(scope)
    plugin = claude_plugin.switched_on(*(() if scope is Scope.USER else (here, project)))
    if plugin and plugin.is_usable and scope not in (Scope.PROJECT, Scope.CODEX):
        if with_line:
            raise SettingsError(
                "the plugin runs the hooks: docs/statusline.md has the entry to add"
            )
        return Plan(project, home, form, without_hooks(path), None, False, plugin, tree)
    text = edits.read(path)
    try:
        entries = entries_of(events_for(scope, claude), form)
        after = settings_text.with_entries(text or "", entries)
        is_by_path = scope is not Scope.PROJECT
        if with_line or (is_by_path and status_line.has_ours(after)):
            launcher, elsewhere = hook_copy.launcher(), _status_line_elsewhere(scope, here)
            if elsewhere and not is_by_path:
                raise SettingsError(
                    "would share your own status line through git: leave --project out"
                )
            after = status_line.with_status_line(after, form, launcher, elsewhere)
    except SettingsError as error:
        raise SettingsError(f"{path} {error}; nothing was changed") from None
    is_own = scope in (Scope.LOCAL, Scope.CODEX)
    committed = is_own and git_exclude.is_tracked(path)
    exclude = git_exclude.to_ignore(path) if is_own and not committed else None
    settings = edits.Edit(path, text, after)
    return Plan(project, home, form, settings, exclude, committed, None, tree, claude)


def carry_out(plan: Plan, adopt: bool = False) -> Plan:
    """Register the project and install the hook, then write the hooks into the settings.

    Events that hooks kept before the home existed are moved into it. Return the plan with the
    resulting home, because a home of 1.0.0 is moved. Raise RegistrationError, SettingsError,
    StackError or TreeError if a step fails.
    """
    registration.refuse_predecessor(plan.project, plan.home)
    users_folder.make()
    home = plan.home if is_in_project(plan.home) else os.path.realpath(plan.home)
    recorded = read_record(home) if kernel.other_machine(home) else {}
    stack = Stack.of(Place("", home, recorded)) if recorded else Stack.prepared(home)
    state = read_record(plan.project).get("state", "on")  # `off` and `down` were set by the user
    with users_folder.removed_if_refused(stack):
        registration.register(plan.project, stack, sys.executable, state, adopt, tree=plan.tree)
    if is_in_project(home):
        plan = replace(plan, home=lifecycle.convert_home(stack).home, tree=plan.project)
    record_environment(plan.home, replace_folders=True)
    with edits.locked():  # otherwise a concurrent last `uninstall` could remove the hooks again
        hook_copy.write(as_default=True)
        if plan.exclude:
            edits.make(plan.exclude)
        if plan.settings in plan.changes and plan.plugin:
            edits.undo(plan.settings)
        elif plan.settings in plan.changes:
            edits.make_undoable(plan.settings, plan.project, without_ours)
    take_early_events(plan.project, plan.home)
    return plan


def events_for(scope: Scope, claude: Version | None) -> tuple[Event, ...]:
    """Return the events that get a hook in the settings of a scope."""
    return CODEX_EVENTS if scope is Scope.CODEX else events_of(claude)


def without_ours(text: str) -> str:
    """Return a settings file's text without hivepipe's hooks and status line."""
    return status_line.without_status_line(settings_text.without_entries(text))


def _status_line_elsewhere(scope: Scope, here: str) -> str:
    """Return the command of the status line that one in this scope would override, or ""."""
    below = {Scope.LOCAL: (Scope.PROJECT, Scope.USER), Scope.PROJECT: (Scope.USER,)}
    for each in below.get(scope, ()):
        with suppress(OSError, SettingsError):  # raised for a file that stays as it is
            text = read_text(claude_code.settings_path(each, here), errors="surrogateescape")
            if command := status_line.command_of(text):
                return command
    return ""


def without_hooks(path: str) -> edits.Edit:
    """Plan the edit that removes hivepipe's hooks and status line from a settings file.

    Raise SettingsError if the file cannot be edited.
    """
    try:
        return edits.undone(path, without_ours)
    except SettingsError as error:
        text = str(error) if path in str(error) else f"{path} {error}"
        raise SettingsError(f"{text}; nothing was changed") from None


def _form(scope: Scope) -> Form:
    if scope is Scope.PROJECT:
        return Form.SHARED
    if scope is Scope.CODEX:
        return Form.SHELL
    return form_for(hook_copy.launcher())


def _tree(project: str, home: str, *, in_tree: bool, adopt: bool) -> str:
    """Return the project whose work tree will contain the data of this home, or "".

    Raise SettingsError if `in_tree` is set, but the home is shared or has data elsewhere.
    """
    tree = registration.tree_with_data(project, home, adopt=adopt)
    if not in_tree or tree:
        return tree
    if not registration.is_of_one_project(home):
        raise SettingsError(
            "--in-tree needs a project whose data no other project shares: leave out --user, and "
            "unset HIVEPIPE_HOME"
        )
    if os.path.lexists(database_path(home)):
        raise SettingsError(
            f"{home} already has data: run `hivepipe move-home --in-tree`, which moves it"
        )
    return project


def _project_and_home(scope: Scope, here: str, *, adopt: bool) -> tuple[str, str]:
    """Return the folder to register, and the home to write into the folder's record.

    Raise SettingsError if HIVEPIPE_HOME contains the project, or RegistrationError if the project
    may have been renamed.
    """
    if scope is Scope.USER:
        home = default_home()
        return home, home
    project = main_checkout(here)
    override = variable("HIVEPIPE_HOME")
    if not override:
        if not adopt:
            refuse_renamed(project)
        return project, registration.own_home(project, adopt=adopt)
    home = absolute(override)
    if f"{project}/".startswith(f"{real_path(home).rstrip('/')}/"):
        raise SettingsError(
            f"HIVEPIPE_HOME={override} contains this project: name a folder for hivepipe alone"
        )
    return project, home


def _refuse_home_folder(here: str) -> None:
    if here in ("/", real_path(user_folder() or "/")):
        raise SettingsError(f"{here} is not a project; for all projects: `hivepipe init --user`")


def _refuse_link_outside(path: str, here: str) -> None:
    if not claude_code.is_inside(path, here):
        target = os.path.realpath(path)
        raise SettingsError(
            f"{path} is a link to {target}, outside the project; nothing was changed"
        )
