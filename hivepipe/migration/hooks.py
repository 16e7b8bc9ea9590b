"""Hooks of the predecessor in the settings files of Claude Code: find, remove, restore."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from hivepipe.errors import SettingsError
from hivepipe.files.regular_file import read_bytes
from hivepipe.home import main_checkout, real_path
from hivepipe.install import claude_code, settings_text
from hivepipe.install.claude_code import Scope
from hivepipe.install.hook_entries import Entry
from hivepipe.install.known_entries import is_ours
from hivepipe.migration.scripts import Verdict, judge

Pair = tuple[str, Entry]  # an event name, and an entry with one handler


@dataclass(frozen=True)
class OldHooks:
    """The predecessor's hooks in one settings file. `trouble` says why the file cannot be read."""

    path: str
    old: list[Pair]
    doubtful: list[Pair]
    trouble: str = ""


def find_hooks(project: str) -> list[OldHooks]:
    """Return the settings files that may have the predecessor's hooks or cannot be read."""
    found = [_hooks_in(path, project) for path in _settings_paths(project)]
    return [each for each in found if each.old or each.doubtful or each.trouble]


def without_old(text: str, project: str) -> str:
    """Return the text of a settings file without the predecessor's hooks."""
    return settings_text.without_entries(text, lambda one: verdict(one, project) is Verdict.OLD)


def with_restored_hooks(text: str, pairs: Iterable[Pair]) -> str:
    """Append the entries that are missing to the existing entries; return the text."""
    there = settings_text.entries(text, lambda _: True)
    missing = [pair for pair in pairs if pair not in there]
    return settings_text.with_added(text, missing) if missing else text


def verdict(handler: object, project: str) -> Verdict:
    """Judge a hook handler of a settings file; the verdict on hivepipe's own is OTHER."""
    return Verdict.OTHER if is_ours(handler) else judge(handler, project)


def command_of(entry: Entry) -> str:
    """Return the command of an entry as a text for people."""
    handler = entry["hooks"][0]
    arguments = handler.get("args")
    words = [handler["command"], *(arguments if isinstance(arguments, list) else [])]
    return " ".join(map(str, words))


def _settings_paths(project: str) -> list[str]:
    """Return the existing settings files; of several paths to one file, only the first."""
    folders = dict.fromkeys((project, real_path(".")))
    paths = [
        claude_code.settings_path(scope, folder)
        for scope in (Scope.PROJECT, Scope.LOCAL)
        for folder in folders
        if f"{folder}/".startswith(f"{project}/") or main_checkout(folder) == project
    ]
    paths.append(claude_code.settings_path(Scope.USER, ""))
    return claude_code.one_of_each_file(filter(os.path.lexists, paths))


def _hooks_in(path: str, project: str) -> OldHooks:
    try:
        text = read_bytes(path).decode("utf-8", "surrogateescape")
        old = settings_text.entries(text, lambda one: verdict(one, project) is Verdict.OLD)
        unsure = settings_text.entries(text, lambda one: verdict(one, project) is Verdict.DOUBTFUL)
    except OSError as error:
        return OldHooks(path, [], [], f"cannot be read: {error.strerror}")
    except SettingsError as error:
        return OldHooks(path, [], [], str(error))
    return OldHooks(path, old, unsure)
