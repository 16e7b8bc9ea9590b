"""Claude Code on this machine: its settings files and its version."""

import os
import re
from collections.abc import Iterable
from enum import StrEnum

from hivepipe.home import user_folder
from hivepipe.programs import find_program, run_to_end
from hivepipe.settings import variable

SKIPS_UNKNOWN_EVENTS_SINCE = (2, 1, 101)  # older versions ignore the whole settings file
_ANSWER_SECS = 10


class Scope(StrEnum):
    """A settings file of Claude Code, named by the option of `hivepipe init` that chooses it."""

    LOCAL = "local"
    PROJECT = "project"
    USER = "user"
    CODEX = "codex"  # Codex CLI's hooks in a project have the same format


def config_folder() -> str:
    """Return the folder of the user's own settings."""
    return os.path.abspath(variable("CLAUDE_CONFIG_DIR") or f"{user_folder()}/.claude")


def settings_path(scope: Scope, project: str) -> str:
    if scope is Scope.USER:
        return f"{config_folder()}/settings.json"
    if scope is Scope.CODEX:
        return f"{project}/.codex/hooks.json"
    name = "settings.json" if scope is Scope.PROJECT else "settings.local.json"
    return f"{project}/.claude/{name}"


def one_of_each_file(paths: Iterable[str]) -> list[str]:
    """Return the paths, but only the first of several paths to the same file."""
    found = {os.path.realpath(path): path for path in reversed(list(paths))}
    return list(reversed(found.values()))


def is_inside(settings: str, project: str) -> bool:
    """Tell whether the file is inside the project, also after links are followed."""
    return os.path.realpath(settings).startswith(f"{project}/")


def version() -> tuple[int, ...] | None:
    """Return the version of the `claude` on PATH, or None if it is unknown."""
    claude = find_program("claude")
    done = run_to_end([claude, "--version"], _ANSWER_SECS) if claude else None
    found = re.search(rb"(\d+)\.(\d+)\.(\d+)", done.stdout) if done else None
    return tuple(map(int, found.groups())) if found else None


def version_text(claude: tuple[int, ...]) -> str:
    return ".".join(map(str, claude))
