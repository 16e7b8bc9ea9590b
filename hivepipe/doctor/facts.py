"""The data for checks, gathered at first access."""

import shlex
import time
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from psutil import Process

from hivepipe.config.config_file import Config
from hivepipe.errors import NoRedisServerError, SettingsError
from hivepipe.files.owner import another_owner
from hivepipe.files.regular_file import read_text
from hivepipe.home import Place, main_checkout, project_of, read_record, real_path
from hivepipe.install import claude_code, claude_plugin, json_text, settings_text
from hivepipe.install.claude_code import Scope
from hivepipe.install.claude_plugin import Plugin
from hivepipe.install.hook_entries import Entry
from hivepipe.queue.spooled import waiting_events
from hivepipe.settings import environment
from hivepipe.stack import kernel, supervisor
from hivepipe.stack.ping import answers
from hivepipe.stack.redis_server import find_server
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import stack_processes

_MANAGED = (
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
)
# From this version on, the local settings at the top of a Git repository count in all its folders.
_READS_TOP_SINCE = (2, 1, 211)


@dataclass(frozen=True)
class Finding:
    """One problem; `mend` is the command that solves it, or "". Notes do not make `doctor` fail."""

    text: str
    mend: str = ""
    is_note: bool = False


@dataclass(frozen=True)
class ManagedFile:
    """A settings file of an administrator; `settings` is empty if the file is invalid."""

    path: str
    settings: dict[str, Any]
    trouble: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables that the file sets for hooks."""
        given = self.settings.get("env")
        pairs = given.items() if isinstance(given, dict) else ()
        return {name: value for name, value in pairs if isinstance(value, str)}


@dataclass(frozen=True)
class SettingsFile(ManagedFile):
    """A settings file of a user or a project, with hivepipe's entries in it."""

    scope: Scope = Scope.USER
    entries: list[tuple[str, Entry]] = field(default_factory=list)


class Facts:
    """One project with its home and its stack."""

    def __init__(self, place: Place, stack: Stack, folder: str = "") -> None:
        """Set up; `folder` is where Claude Code would be started, by default the current folder."""
        self.place = place
        self.stack = stack
        self.folder = folder or real_path(".")
        self.home = Path(place.home)
        self.now = time.time()

    @cached_property
    def record(self) -> dict[str, str]:
        """Return the record of the project, or else of the home."""
        return read_record(self.place.project) or read_record(self.place.home)

    @cached_property
    def settings_files(self) -> list[SettingsFile]:
        """Return Claude Code's existing settings files for this place, by descending precedence."""
        folders = dict.fromkeys((self.folder, self.place.project))
        paths = {
            claude_code.settings_path(scope, folder): scope for scope in Scope for folder in folders
        }
        return list(filter(None, [_settings_file(scope, path) for path, scope in paths.items()]))

    @property
    def managed_files(self) -> list[ManagedFile]:
        """Return an administrator's settings files, existing or not, by ascending precedence."""
        dropped = (sorted(Path(path).parent.glob("managed-settings.d/*.json")) for path in _MANAGED)
        paths = [*map(Path, _MANAGED), *chain.from_iterable(dropped)]
        return [_managed_file(path) for path in paths]

    @property
    def by_precedence(self) -> list[ManagedFile]:
        """Return all settings files, including administrators', by descending precedence."""
        return [*reversed(self.managed_files), *self.settings_files]

    @cached_property
    def plugin(self) -> Plugin | None:
        """Return the plugin that is enabled here, installed or not, or None."""
        return claude_plugin.switched_on(self.folder, self.place.project)

    @cached_property
    def claude(self) -> tuple[int, ...] | None:
        """Return the version of Claude Code, or None if it is unknown."""
        return claude_code.version()

    @property
    def with_hooks(self) -> list[SettingsFile]:
        """Return the settings files that contain hivepipe's hooks."""
        return [file for file in self.settings_files if file.entries]

    @property
    def with_own_hooks(self) -> list[SettingsFile]:
        """Return the files of `with_hooks` that this user owns, and so can repair."""
        return [file for file in self.with_hooks if not another_owner(file.path)]

    @property
    def managed_with_hooks(self) -> list[str]:
        """Return the paths of an administrator's files that contain hivepipe's hooks."""
        return [it.path for it in self.managed_files if settings_text.file_has_entries(it.path)]

    @property
    def who_runs_hooks(self) -> list[str]:
        """Return the sources of hivepipe's hooks: settings files and the plugin."""
        plugin = self.plugin
        named = [f"the plugin {plugin.id} {plugin.version}"] if plugin and plugin.is_usable else []
        return [*self.managed_with_hooks, *[file.path for file in self.with_hooks], *named]

    @property
    def is_out_of_reach(self) -> bool:
        """Tell whether sessions that start in `folder` read none of the files with the hooks."""
        top = _settings_file(Scope.LOCAL, self._top_file)  # perhaps of another project
        files = [file for file in self.with_hooks if file.scope is not Scope.CODEX]
        files += [top] if top and top.entries else []
        has_plugin = self.plugin and self.plugin.is_usable
        return bool(files) and not has_plugin and not any(map(self._is_read, files))

    def _is_read(self, file: SettingsFile) -> bool:
        reads_top = self.claude is None or self.claude >= _READS_TOP_SINCE
        return (
            file.scope is Scope.USER
            or file.path == claude_code.settings_path(file.scope, self.folder)
            or (file.path == self._top_file and reads_top)
        )

    @property
    def _top_file(self) -> str:
        """Return the path of the local settings at the main checkout's top, or in the folder."""
        folders = (Path(self.folder), *Path(self.folder).parents)
        top = next((str(path) for path in folders if (path / ".git").exists()), self.folder)
        return claude_code.settings_path(Scope.LOCAL, main_checkout(top))

    @cached_property
    def is_alive(self) -> bool:
        """Tell whether this home's Redis answers."""
        if self.stack.url:  # a Redis that hangs is waited for only once
            return not self.redis_trouble
        return answers(self.stack.address)

    @cached_property
    def redis_trouble(self) -> str:
        """Return why this home's Redis does not accept jobs, or ""."""
        return supervisor.redis_trouble(self.stack)

    @cached_property
    def programs(self) -> list[dict[str, Any]]:
        """Return the supervisor's information about its programs, or [] without a supervisor."""
        return supervisor.processes(self.stack)

    @cached_property
    def processes(self) -> dict[str, list[Process]]:
        """Return program name -> processes of the stack, supervised or not."""
        return stack_processes(self.stack)

    @cached_property
    def redis_server(self) -> tuple[str, str]:
        """Return the path of a server for the home's own Redis, and an error if none was found.

        Both are "" if the home uses another Redis.
        """
        if self.stack.url:
            return "", ""
        try:
            return find_server(self.stack.home), ""
        except NoRedisServerError as error:
            return "", str(error)

    @cached_property
    def spooled(self) -> list[Path]:
        """Return the files of spooled events, oldest first."""
        return waiting_events(str(self.home))

    @cached_property
    def config(self) -> Config:
        return Config(self.place.home, self.place.project)

    @property
    def is_in_containers(self) -> bool:
        """Tell whether containers run this home's stack."""
        return kernel.is_in_containers(str(self.home))

    @property
    def up(self) -> str:
        """Return the command that starts this home's stack."""
        if self.is_in_containers:
            return "docker compose up -d"
        is_own = self.place.project in (project_of(self.place.home), self.place.home)
        if is_own or environment("HIVEPIPE_HOME"):
            return "hivepipe up -d"
        return f"HIVEPIPE_HOME={shlex.quote(self.place.home)} hivepipe up -d"


def _settings_file(scope: Scope, path: str) -> SettingsFile | None:
    try:
        text = read_text(path)
        entries = settings_text.entries(text)
        settings = json_text.parse(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError, SettingsError) as error:
        return SettingsFile(path, {}, str(error), scope)
    return SettingsFile(path, settings, "", scope, entries)


def _managed_file(path: Path) -> ManagedFile:
    """Read a file of an administrator; Claude Code ignores its invalid values one by one."""
    try:
        settings = json_text.parse(read_text(path))
    except OSError:  # missing, or not readable for this user
        return ManagedFile(str(path), {})
    except (UnicodeDecodeError, SettingsError) as error:
        return ManagedFile(str(path), {}, str(error))
    if not isinstance(settings, dict):
        return ManagedFile(str(path), {}, "is not a JSON object")
    return ManagedFile(str(path), settings)
