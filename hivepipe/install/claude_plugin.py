"""hivepipe as a plugin of Claude Code: whether it is enabled and installed here."""

from pathlib import Path
from typing import NamedTuple

from hivepipe.files.typed_file import read_object
from hivepipe.install import claude_code
from hivepipe.install.claude_code import Scope

_NAME = "hivepipe@"  # the name of the marketplace follows this prefix


class Plugin(NamedTuple):
    """The plugin that the settings enable. `folder` is "" if Claude Code has no copy of it."""

    id: str
    folder: str
    version: str

    @property
    def is_usable(self) -> bool:
        """Tell whether Claude Code can run the plugin's hooks."""
        return bool(self.folder)


def switched_on(*projects: str) -> Plugin | None:
    """Return the plugin if it is enabled in these folders of one project, else None.

    Without a folder, return the plugin if it is enabled for all projects.
    """
    paths = [claude_code.settings_path(Scope.USER, "")]
    for scope in (Scope.PROJECT, Scope.LOCAL):  # the last scope takes precedence
        paths += [claude_code.settings_path(scope, project) for project in projects]
    plugins: dict[str, bool] = {}
    for path in paths:
        enabled = read_object(path).get("enabledPlugins")
        plugins |= enabled if isinstance(enabled, dict) else {}
    found = [
        _installed(id, projects) for id, is_on in plugins.items() if is_on and id.startswith(_NAME)
    ]
    return max(found, key=lambda plugin: plugin.is_usable, default=None)


def _installed(id: str, projects: tuple[str, ...]) -> Plugin:
    """Return the plugin; its folder is a copy installed for all projects or for one of these."""
    known = read_object(f"{claude_code.config_folder()}/plugins/installed_plugins.json").get(
        "plugins"
    )
    copies = known.get(id) if isinstance(known, dict) else None
    for copy in copies if isinstance(copies, list) else [copies]:  # older versions list one copy
        if not isinstance(copy, dict) or copy.get("projectPath") not in (None, *projects):
            continue
        folder = str(copy.get("installPath", ""))
        if Path(folder, "hooks", "plugin.sh").is_file():
            manifest = read_object(f"{folder}/.claude-plugin/plugin.json")
            return Plugin(id, folder, str(manifest.get("version", "")))
    return Plugin(id, "", "")
