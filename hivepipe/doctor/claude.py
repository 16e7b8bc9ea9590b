"""Checks whether Claude Code runs hooks here, and how long it keeps transcripts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hivepipe.doctor.facts import Facts, Finding
from hivepipe.files.typed_file import read_object
from hivepipe.home import user_folder
from hivepipe.install import claude_code
from hivepipe.install.claude_code import Scope
from hivepipe.settings import environment

_MANAGED = (
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
)
_BARE = ("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE")
_DEFAULT_CLEANUP_DAYS = 30
_ENOUGH_DAYS = 365


def readable(facts: Facts) -> Iterator[Finding]:
    """Find settings files with invalid JSON, which Claude Code ignores as a whole."""
    for file in facts.settings_files:
        if file.trouble:
            yield Finding(f"{file.path} {file.trouble}: Claude Code ignores the file")


def managed(facts: Facts) -> Iterator[Finding]:
    """Find an administrator's settings that disable hivepipe's hooks.

    Such settings override all others.
    """
    files = {path: read_object(path) for path in managed_files()}
    for path, settings in files.items():
        for name in _against_hooks(settings, facts, _has_plugin(files.values())):
            text = f"your hooks will not run, because {path} says {name}"
            yield Finding(f"{text}: ask the administrator of this machine")


def _against_hooks(
    settings: dict[str, Any], facts: Facts, is_plugin_managed: bool
) -> Iterator[str]:
    """Yield the settings that disable hivepipe's hooks. Some do not apply to a plugin's hooks."""
    if settings.get("disableAllHooks") is True:
        yield "disableAllHooks"
    if settings.get("allowManagedHooksOnly") is True and not is_plugin_managed:
        yield "allowManagedHooksOnly"
    only_plugins = settings.get("strictPluginOnlyCustomization")
    names_hooks = isinstance(only_plugins, list) and "hooks" in only_plugins
    has_plugin = is_plugin_managed or (facts.plugin and facts.plugin.is_usable)
    if (only_plugins is True or names_hooks) and not has_plugin:
        yield "strictPluginOnlyCustomization (the plugin's hooks would run)"


def _has_plugin(files: Iterable[dict[str, Any]]) -> bool:
    """Tell whether an administrator enables the plugin, so that its hooks count as managed."""
    enabled = [settings.get("enabledPlugins") for settings in files]
    names = [name for each in enabled if isinstance(each, dict) for name in each if each[name]]
    return any(name.startswith("hivepipe@") for name in names)


def switched_off(facts: Facts) -> Iterator[Finding]:
    """Find user or project settings that disable all hooks and that no other file overrides."""
    if any("disableAllHooks" in read_object(path) for path in managed_files()):
        return  # the check `managed` reports a true value; a false one takes precedence
    for file in facts.settings_files:
        if "disableAllHooks" in file.settings and file.scope is not Scope.CODEX:
            if file.settings["disableAllHooks"] is True:
                text = f"your hooks will not run, because {file.path} says disableAllHooks"
                yield Finding(f"{text}: remove that setting")
            return


def trusted(facts: Facts) -> Iterator[Finding]:
    """Find a folder that the user has not trusted. Interactive sessions run no hooks in it."""
    state = read_object(f"{environment('CLAUDE_CONFIG_DIR') or user_folder()}/.claude.json")
    projects = state.get("projects", {})
    if not state or not isinstance(projects, dict) or not facts.settings_files:
        return
    folder = Path(facts.place.project)
    found = [projects.get(str(path)) for path in (folder, *folder.parents)]
    if not any(isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") for entry in found):
        text = f"until {folder} is trusted, only `claude -p` runs the hooks"
        yield Finding(f"{text}: start `claude` there once and accept", is_note=True)


def elsewhere(_facts: Facts) -> Iterator[Finding]:
    """Find variables of CI or cloud machines, on which hooks do not start the stack."""
    for name in ("CI", "CLAUDE_CODE_REMOTE"):
        if environment(name):
            text = (
                f"{name} is set: hooks do not start the stack, and do nothing in a project that is"
            )
            text = f"{text} not registered; HIVEPIPE_AUTOSTART=1 enables both"
            yield Finding(text, is_note=True)


def disabled(_facts: Facts) -> Iterator[Finding]:
    """Find environment variables that disable hooks or the archive."""
    for name in ("HIVEPIPE_DISABLED", "HIVEPIPE_NESTED"):
        if environment(name):
            yield Finding(f"{name} is set: hooks do nothing", f"unset {name}")
    for name in _BARE:
        if environment(name):
            text = f"your hooks will not run, because {name} is set, as by `claude --bare`"
            yield Finding(text, f"unset {name}")
    folder = environment("CLAUDE_CONFIG_DIR")
    if folder and not folder.startswith("/"):
        text = f"CLAUDE_CONFIG_DIR={folder} is relative to each session's folder"
        yield Finding(f"{text}, so transcripts are not archived: set an absolute path")


def transcripts(facts: Facts) -> Iterator[Finding]:
    """Report settings by which Claude Code deletes transcripts too soon."""
    days = [file.settings.get("cleanupPeriodDays") for file in facts.settings_files]
    kept_days = next((value for value in days if isinstance(value, int)), _DEFAULT_CLEANUP_DAYS)
    if kept_days < _ENOUGH_DAYS:
        path = f"{claude_code.config_folder()}/settings.json"
        text = f"Claude Code deletes transcripts after {kept_days} days; to keep them, put"
        yield Finding(f'{text} `"cleanupPeriodDays": 3650` into {path}', is_note=True)


def managed_files() -> list[str]:
    """Return the possible paths of an administrator's settings files."""
    extra = (sorted(Path(path).parent.glob("managed-settings.d/*.json")) for path in _MANAGED)
    return [*_MANAGED, *(str(path) for paths in extra for path in paths)]
