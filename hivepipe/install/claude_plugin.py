"""hivepipe as a plugin of Claude Code: whether it is enabled here, and installed."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.files.regular_file import read_text
from hivepipe.install import claude_code
from hivepipe.install.claude_code import Scope

_NAME = "hivepipe@"  # the name of the marketplace follows


class Plugin(NamedTuple):
    """The plugin that the settings enable; `folder` is empty if Claude Code has no copy of it."""

    id: str
    folder: str
    version: str

    @property
    def is_there(self) -> bool:
        """Tell whether Claude Code can run the plugin's hooks."""
        return bool(self.folder)


def switched_on(*projects: str) -> Plugin | None:
    """Return the plugin enabled in these folders of one project, or None.

    Without a folder, return the plugin enabled for all projects.
    """
    paths = [claude_code.settings_path(Scope.USER, "")]
    for scope in (Scope.PROJECT, Scope.LOCAL):  # the last one wins
        paths += [claude_code.settings_path(scope, project) for project in projects]
    plugins: dict[str, bool] = {}
    for path in paths:
        enabled = _json(path).get("enabledPlugins")
        plugins |= enabled if isinstance(enabled, dict) else {}
    found = [_installed(id, projects) for id, is_on in plugins.items() if is_on and _is_ours(id)]
    return max(found, key=lambda plugin: plugin.is_there, default=None)


def _is_ours(id: str) -> bool:
    return id.startswith(_NAME)


def _installed(id: str, projects: tuple[str, ...]) -> Plugin:
    """Return the plugin with Claude Code's copy of it, for all projects or for one of these."""
    known = _json(f"{claude_code.config_folder()}/plugins/installed_plugins.json").get("plugins")
    copies = known.get(id) if isinstance(known, dict) else None
    for copy in copies if isinstance(copies, list) else [copies]:  # older versions: one
        if not isinstance(copy, dict) or copy.get("projectPath") not in (None, *projects):
            continue
        folder = str(copy.get("installPath", ""))
        if Path(folder, "hooks", "plugin.sh").is_file():
            manifest = _json(f"{folder}/.claude-plugin/plugin.json")
            return Plugin(id, folder, str(manifest.get("version", "")))
    return Plugin(id, "", "")


def _json(path: str) -> dict[str, Any]:
    """Return the object in a file, or {} if it is missing, no regular file, or invalid."""
    if not Path(path).is_file():
        return {}
    try:
        found = json.loads(read_text(path, "utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
