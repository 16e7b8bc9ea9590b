"""Recognise a renamed project by its hooks, before it gets a second, empty home."""

import os
import shlex

from hivepipe import git
from hivepipe.errors import RegistrationError, TreeError
from hivepipe.home import IN_PROJECT, read_record, real_path
from hivepipe.install.claude_code import Scope, settings_path
from hivepipe.install.known_entries import launcher_of
from hivepipe.install.settings_text import file_has_entries
from hivepipe.stack import hook_copy
from hivepipe.stack.home_marks import is_whole
from hivepipe.stack.project_records import records


def refuse_renamed(project: str) -> None:
    """Raise RegistrationError if this folder may be a registered project that was renamed."""
    if text := why_renamed(project):
        raise RegistrationError(text)


def why_renamed(project: str) -> str:
    """Return advice for the user if the folder may be a renamed registered project, else ""."""
    if not (gone := _missing_projects(project)):
        return ""
    old, of_many = (gone[0], "") if len(gone) == 1 else ("OLD", f" (OLD: {' or '.join(gone)})")
    return (
        f"{project} is not registered, but has hooks that were written for another folder. If it "
        f"was renamed from {old}: `hivepipe move-home --from {old}`{of_many}. If it is "
        "a copy: `hivepipe uninstall`, then `hivepipe init`"
    )


def _missing_projects(project: str) -> list[str]:
    """Return the registered projects whose folder is gone, if this folder may be one of them."""
    has_home = read_record(project).get("home") or is_whole(f"{project}{IN_PROJECT}")
    if has_home or not _has_hooks(project):
        return []
    found = {each.get("project", "") for each in records() if os.path.isdir(each["home"])} - {""}
    return sorted(shlex.quote(path) for path in found - {project} if _is_gone(path, project))


def _has_hooks(project: str) -> bool:
    """Tell whether the folder has settings with hooks of this user that git does not track."""
    local = [settings_path(scope, project) for scope in (Scope.LOCAL, Scope.CODEX)]
    if not any(file_has_entries(path, _is_users) for path in local):
        return False
    try:
        return not git.tracked_files(project, *local)
    except TreeError:  # git does not answer: assume that no file is tracked
        return True


def _is_users(handler: object) -> bool:
    """Tell whether a hook handler's program is in this user's folder of hooks."""
    return isinstance(handler, dict) and hook_copy.is_in_place(launcher_of(handler))


def _is_gone(path: str, project: str) -> bool:
    """Tell whether the folder `path` is missing, or is now a link to the project."""
    return not os.path.isdir(path) or real_path(path) == project
