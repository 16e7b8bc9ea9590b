"""hivepipe as a plugin of Claude Code: is it switched on here, and is it there?"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.install import claude_code
from hivepipe.install.claude_code import Scope
from hivepipe.regular_file import read_text

_NAME = "hivepipe@"  # and the marketplace it came from


class Plugin(NamedTuple):
    """The plugin as the settings switch it on; `folder` is empty if Claude Code has no copy."""

    id: str
    folder: str
    version: str

    @property
    def is_there(self) -> bool:
        """Can Claude Code run its hooks?"""
        return bool(self.folder)


def switched_on(*projects: str) -> Plugin | None:
    """Return the plugin that runs in these folders of one project; None if none is switched on.

    Without a folder: the one that runs in all projects.
    """
    paths = [claude_code.settings_path(Scope.USER, "")]
    for scope in (Scope.PROJECT, Scope.LOCAL):  # the last one wins
        paths += [claude_code.settings_path(scope, project) for project in projects]
    said: dict[str, bool] = {}
    for path in paths:
        enabled = _json(path).get("enabledPlugins")
        said |= enabled if isinstance(enabled, dict) else {}
    found = [_installed(id, projects) for id, is_on in said.items() if is_on and _is_ours(id)]
    return max(found, key=lambda plugin: plugin.is_there, default=None)


def _is_ours(id: str) -> bool:
    return id.startswith(_NAME)


def _installed(id: str, projects: tuple[str, ...]) -> Plugin:
    """Look for Claude Code's copy: for all projects, or for one of these."""
    known = _json(f"{claude_code.config_folder()}/plugins/installed_plugins.json").get("plugins")
    copies = known.get(id) if isinstance(known, dict) else None
    for copy in copies if isinstance(copies, list) else [copies]:  # one, in older versions
        if not isinstance(copy, dict) or copy.get("projectPath") not in (None, *projects):
            continue
        folder = str(copy.get("installPath", ""))
        if Path(folder, "hooks", "plugin.sh").is_file():
            manifest = _json(f"{folder}/.claude-plugin/plugin.json")
            return Plugin(id, folder, str(manifest.get("version", "")))
    return Plugin(id, "", "")


def _json(path: str) -> dict[str, Any]:
    """Return the object in a file; empty if it cannot be read as one: a link to a device, say."""
    if not Path(path).is_file():
        return {}
    try:
        found = json.loads(read_text(path, "utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
