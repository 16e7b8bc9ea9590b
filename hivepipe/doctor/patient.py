"""What a check looks at: gathered once, asked for only by the checks that need it."""

import shlex
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hivepipe.config import Config
from hivepipe.errors import SettingsError
from hivepipe.home import Place, project_of, read_record, real_path
from hivepipe.install import claude_code, claude_plugin, json_text, settings_text
from hivepipe.install.claude_code import Scope
from hivepipe.install.claude_plugin import Plugin
from hivepipe.install.hook_entries import Entry
from hivepipe.queues.spool import spool_folders
from hivepipe.queues.spooled import spool_files
from hivepipe.regular_file import read_text
from hivepipe.settings import environment
from hivepipe.stack import supervisor
from hivepipe.stack.lock import Stack
from hivepipe.stack.ping import answers


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong; `mend` is a command, empty where there is none.

    A note is worth knowing and no illness: it does not make `doctor` fail.
    """

    text: str
    mend: str = ""
    is_note: bool = False


@dataclass(frozen=True)
class SettingsFile:
    """A settings file of Claude Code; `settings` is empty if it cannot be read as such."""

    scope: Scope
    path: str
    settings: dict[str, Any]
    entries: list[tuple[str, Entry]]
    trouble: str = ""


class Patient:
    """One project with its home and its stack."""

    def __init__(self, place: Place, stack: Stack) -> None:
        """Gather nothing yet."""
        self.place = place
        self.stack = stack
        self.home = Path(place.home)
        self.now = time.time()

    @cached_property
    def record(self) -> dict[str, str]:
        """The record that this place was found by: the project's, else the home's."""
        return read_record(self.place.project) or read_record(self.place.home)

    @cached_property
    def settings_files(self) -> list[SettingsFile]:
        """Claude Code's settings files of this place that exist, those that win first."""
        folders = dict.fromkeys((real_path("."), self.place.project))
        paths = {
            claude_code.settings_path(scope, folder): scope for scope in Scope for folder in folders
        }
        return [_settings_file(scope, path) for path, scope in paths.items() if Path(path).exists()]

    @cached_property
    def plugin(self) -> Plugin | None:
        """The plugin of ours that is switched on here, whether or not it is there."""
        return claude_plugin.switched_on(real_path("."), self.place.project)

    @cached_property
    def claude(self) -> tuple[int, ...] | None:
        """The version of Claude Code; None: unknown."""
        return claude_code.version()

    @property
    def with_hooks(self) -> list[SettingsFile]:
        """The settings files that name hooks of ours."""
        return [file for file in self.settings_files if file.entries]

    @property
    def who_runs_hooks(self) -> list[str]:
        """Those that have Claude Code run our hooks: settings files, the plugin."""
        plugin = self.plugin
        named = [f"the plugin {plugin.id} {plugin.version}"] if plugin and plugin.is_there else []
        return [*[file.path for file in self.with_hooks], *named]

    @cached_property
    def is_alive(self) -> bool:
        """Does this home's Redis answer?"""
        return answers(self.stack.address)

    @cached_property
    def programs(self) -> list[dict[str, Any]]:
        """What the supervisor says of its programs; empty if none runs."""
        return supervisor.processes(self.stack)

    @cached_property
    def spooled(self) -> list[Path]:
        """The events that wait on disk, oldest first."""
        folders = [Path(folder) for folder in spool_folders(str(self.home))]
        found = [path for folder in folders for path in spool_files(folder)]
        return sorted(found, key=lambda path: path.name)

    @cached_property
    def oldest_secs(self) -> float:
        """For how long the oldest of them waits."""
        try:
            return self.now - int(self.spooled[0].name.partition("_")[0]) / 1e9
        except (IndexError, ValueError):
            return 0

    @cached_property
    def config(self) -> Config:
        """What `config.toml` says."""
        return Config(self.place.home, self.place.project)

    @property
    def up(self) -> str:
        """The command that starts this home's stack."""
        is_own = self.place.project in (project_of(self.place.home), self.place.home)
        if is_own or environment("HIVEPIPE_HOME"):
            return "hivepipe up -d"
        return f"HIVEPIPE_HOME={shlex.quote(self.place.home)} hivepipe up -d"


def _settings_file(scope: Scope, path: str) -> SettingsFile:
    try:
        text = read_text(path, "utf-8-sig")
        entries = settings_text.entries(text)
        settings = json_text.parse(text) if text.strip() else {}
    except (OSError, UnicodeDecodeError, SettingsError) as error:
        return SettingsFile(scope, path, {}, [], str(error))
    return SettingsFile(scope, path, settings, entries)
