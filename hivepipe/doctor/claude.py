"""Checks whether Claude Code runs hooks here, and how long it keeps transcripts."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hivepipe.archive.sources import newest_session, open_source
from hivepipe.db.listings import Listings, read_store
from hivepipe.db.location import database_path
from hivepipe.doctor.facts import Facts, Finding, ManagedFile
from hivepipe.doctor.stack import may_lack_events
from hivepipe.errors import RefusedTranscriptError
from hivepipe.files.typed_file import read_object
from hivepipe.home import record_path, user_folder
from hivepipe.install import claude_code
from hivepipe.install.claude_code import Scope
from hivepipe.settings import environment, means_yes
from hivepipe.times import ns_of

# Settings that disable hooks
_ALL_OFF = "disableAllHooks"
_MANAGED_ONLY = "allowManagedHooksOnly"
_PLUGINS_ONLY = "strictPluginOnlyCustomization"
# Variable that disables hooks -> option of `claude` with the same effect
_BARE = {
    "CLAUDE_CODE_SIMPLE": "--bare",
    "CLAUDE_CODE_SAFE_MODE": "--safe-mode",
    "CLAUDE_CODE_RESTRICTED": "--restricted",
}
# From this version on, no hook runs if an administrator's settings are invalid. Version 2.1.197
# ignores invalid settings.
_STRICT_SINCE = (2, 1, 260)
_SETTLED_SECS = 10  # after this time, a session's first event is stored
_DEFAULT_CLEANUP_DAYS = 30
_ENOUGH_DAYS = 365


def readable(facts: Facts) -> Iterator[Finding]:
    """Find settings files with invalid JSON, which Claude Code ignores as a whole."""
    for file in facts.settings_files:
        if file.trouble:
            yield Finding(f"{file.path} {file.trouble}: Claude Code ignores the file")


def managed(facts: Facts) -> Iterator[Finding]:
    """Find settings of an administrator that disable the hooks.

    The settings of an administrator override all other settings.
    """
    for file in facts.managed_files:
        if file.trouble and _is_strict(facts):
            text = f"your hooks will not run, because {file.path} {file.trouble}"
            yield Finding(f"{text}: ask the administrator of this machine")
    for name in (_ALL_OFF, _MANAGED_ONLY, _PLUGINS_ONLY):
        for file in _in_force(name, facts):
            if _is_against_hooks(name, file.settings[name], facts):
                hint = " (the plugin's hooks would run)" if name == _PLUGINS_ONLY else ""
                text = f"your hooks will not run, because {file.path} says {name}{hint}"
                yield Finding(f"{text}: ask the administrator of this machine")


def _in_force(name: str, facts: Facts) -> list[ManagedFile]:
    """Return those files of an administrator whose value of a setting is in force.

    The value of a file replaces that of an earlier file, but lists are joined.
    """
    found: list[ManagedFile] = []
    for file in facts.managed_files:
        if name in file.settings:
            values = [each.settings[name] for each in (file, *found)]
            found = [*(found if all(isinstance(it, list) for it in values) else ()), file]
    return found


def _is_against_hooks(name: str, value: object, facts: Facts) -> bool:
    """Tell whether a setting disables hivepipe's hooks.

    Some settings spare the hooks of managed settings, or of a plugin.
    """
    if name == _ALL_OFF:
        return value is True
    if name == _MANAGED_ONLY:
        is_set = value is True or (value is not False and _is_strict(facts))
        return is_set and not _has_managed_hooks(facts)
    names_hooks = isinstance(value, list) and "hooks" in value
    has_plugin = _has_managed_hooks(facts) or (facts.plugin and facts.plugin.is_usable)
    return (value is True or names_hooks) and not has_plugin


def _is_strict(facts: Facts) -> bool:
    """Tell whether invalid settings of an administrator disable the hooks.

    This depends on the version of Claude Code. Return True if the version is unknown.
    """
    return facts.claude is None or facts.claude >= _STRICT_SINCE


def _has_managed_hooks(facts: Facts) -> bool:
    """Tell whether an administrator's files have hivepipe's hooks or enable its plugin."""
    enabled = [file.settings.get("enabledPlugins") for file in facts.managed_files]
    names = [name for each in enabled if isinstance(each, dict) for name in each if each[name]]
    return bool(facts.managed_with_hooks) or any(name.startswith("hivepipe@") for name in names)


def switched_off(facts: Facts) -> Iterator[Finding]:
    """Find user or project settings that disable all hooks and that no other file overrides."""
    if _in_force(_ALL_OFF, facts):
        return  # the check `managed` reports a true value; a false one takes precedence
    for file in facts.settings_files:
        if _ALL_OFF in file.settings and file.scope is not Scope.CODEX:
            if file.settings[_ALL_OFF] is True:
                text = f"your hooks will not run, because {file.path} says disableAllHooks"
                yield Finding(f"{text}: remove that setting")
            return


def trusted(facts: Facts) -> Iterator[Finding]:
    """Find a folder that the user has not trusted, in which interactive sessions run no hooks."""
    state = read_object(f"{environment('CLAUDE_CONFIG_DIR') or user_folder()}/.claude.json")
    projects = state.get("projects", {})
    if not state or not isinstance(projects, dict) or not facts.settings_files:
        return
    folder = Path(facts.place.project)
    found = [projects.get(str(path)) for path in (folder, *folder.parents)]
    if not any(isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") for entry in found):
        text = f"until {folder} is trusted, only `claude -p` runs the hooks"
        yield Finding(f"{text}: start `claude` there once and accept", is_note=True)


def unrecorded(facts: Facts) -> Iterator[Finding]:
    """Find a session that ran without the hooks, as after an error in one value of a settings file.

    Only the session whose transcript changed last in the project's folder is examined, and only if
    it started there, after the last change of the files with the hooks and of the project's record.
    """
    files = [file.path for file in facts.with_hooks if file.scope is not Scope.CODEX]
    if not files or facts.record.get("state") == "off":
        return
    claude = claude_code.config_folder()
    name = re.sub("[^a-zA-Z0-9]", "-", facts.place.project)
    path = newest_session(f"{claude}/projects/{name}")
    changed = [os.stat(file).st_mtime for file in files]
    with suppress(OSError):  # `hivepipe on` changes this record, which may be missing
        changed.append(os.stat(record_path(facts.place.project)).st_mtime)
    started = 0.0
    # The file's time is no measure: a session may be older, and a copy of a transcript is newer.
    with suppress(OSError, RefusedTranscriptError), open_source(path, claude) as source:
        head = source.head()
        # `/cd` moves the transcript of another project's session here.
        started = ns_of(head.time) / 1e9 if head.cwd == facts.place.project else 0.0
    if not max(changed) < started < facts.now - _SETTLED_SECS or may_lack_events(facts):
        return
    session = Path(path).stem
    otherwise = database_path(facts.place.home).exists()  # if the database cannot be read
    if not read_store(facts.place.home, lambda store: _is_known(store, session), otherwise):
        text = f"no hook recorded the newest session, {session}. Either it ran without hooks, as by"
        text = f"{text} `claude --bare`, an SDK, disableAllHooks or HIVEPIPE_DISABLED, or Claude"
        text = f"{text} Code skipped a file with an invalid value ({', '.join(files)})"
        yield Finding(f"{text}; `claude doctor` names the value", is_note=True)


def _is_known(store: Listings, session: str) -> bool:
    """Tell whether a session is stored, or was deleted."""
    sql = """
        SELECT 1 FROM sessions WHERE id = :id
        UNION SELECT 1 FROM deleted_sessions WHERE id = :id
    """
    return store.row(sql, {"id": session}) is not None


def reached(facts: Facts) -> Iterator[Finding]:
    """Find a folder below the project in which a session reads no settings file with the hooks."""
    if facts.is_out_of_reach:
        text = f"sessions that start in {facts.folder} are not recorded: Claude Code runs the hooks"
        text = f"{text} of {facts.place.project} only in sessions that start there"
        yield Finding(f"{text}; `hivepipe init --user` records all", is_note=True)


def elsewhere(_facts: Facts) -> Iterator[Finding]:
    """Find variables of a CI or cloud machine; hooks do not start the stack on such a machine."""
    for name in ("CI", "CLAUDE_CODE_REMOTE"):
        if environment(name):
            text = (
                f"{name} is set: hooks do not start the stack, and do nothing in a project that is"
            )
            text = f"{text} not registered; HIVEPIPE_AUTOSTART=1 enables both"
            yield Finding(text, is_note=True)


def disabled(facts: Facts) -> Iterator[Finding]:
    """Find environment variables that disable hooks or the archive."""
    for name in ("HIVEPIPE_DISABLED", "HIVEPIPE_NESTED"):
        files = [file for file in facts.by_precedence if name in file.variables]
        word = files[0].variables[name] if files else environment(name) or ""
        if means_yes(word) and files:
            yield Finding(f"{files[0].path} sets {name}: hooks do nothing; remove it there")
        elif means_yes(word):
            yield Finding(f"{name} is set: hooks do nothing", f"unset {name}")
    for name, option in _BARE.items():
        if means_yes((environment(name) or "").strip()):
            text = f"your hooks will not run, because {name} is set, as by `claude {option}`"
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
