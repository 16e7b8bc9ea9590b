"""Settings files in worktrees of a project that contain hivepipe's hooks.

`claude -w` and people copy `settings.local.json` into worktrees, and `uninstall` removes the hooks
from the copies. A `settings.json` belongs to a branch, so it is reported and not changed.
"""

from pathlib import Path

from hivepipe import git
from hivepipe.home import real_path
from hivepipe.install import claude_code, settings_text
from hivepipe.install.claude_code import Scope

_WORD = "worktree "


def settings_with_hooks(project: str) -> list[str]:
    """Return the settings files with hooks in worktrees other than `project` and this folder."""
    listed = (git.answer(project, "worktree", "list", "--porcelain") or "").splitlines()
    folders = [line.removeprefix(_WORD) for line in listed if line.startswith(_WORD)]
    return [
        path
        for folder in folders
        if folder not in (project, real_path("."))
        for scope in (Scope.LOCAL, Scope.PROJECT)
        if settings_text.file_has_entries(path := claude_code.settings_path(scope, folder))
    ]


def local_copies(project: str) -> list[str]:
    """Return the `settings.local.json` with hooks that lie inside the project's worktrees."""
    return [
        path
        for path in settings_with_hooks(project)
        if path == claude_code.settings_path(Scope.LOCAL, folder := str(Path(path).parents[1]))
        and claude_code.is_inside(path, folder)
    ]
