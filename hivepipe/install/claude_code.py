"""Claude Code on this machine: its settings files and its version."""

import os
import re
import subprocess
from enum import StrEnum

from hivepipe.home import user_folder
from hivepipe.programs import find_program
from hivepipe.settings import variable

EXEC_FORM_SINCE = (2, 1, 139)  # older ones ignore `args` and feed the event to a bare Python
_ANSWER_SECS = 10


class Scope(StrEnum):
    """Whose settings: the name is the option of `hivepipe init`."""

    LOCAL = "local"
    PROJECT = "project"
    USER = "user"


def config_folder() -> str:
    """Return the folder of the user's own settings."""
    return variable("CLAUDE_CONFIG_DIR") or f"{user_folder()}/.claude"


def settings_path(scope: Scope, project: str) -> str:
    """Return the settings file of a scope."""
    if scope is Scope.USER:
        return f"{config_folder()}/settings.json"
    name = "settings.json" if scope is Scope.PROJECT else "settings.local.json"
    return f"{project}/.claude/{name}"


def is_inside(settings: str, project: str) -> bool:
    """Does this file stay in the project? A repository could ship a link to somebody's own."""
    return os.path.realpath(settings).startswith(f"{project}/")


def version() -> tuple[int, ...] | None:
    """Return the version of the `claude` on PATH; None if there is none that says so."""
    claude = find_program("claude")
    if claude is None:
        return None
    try:
        said = subprocess.run(
            [claude, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", said.stdout)
    return tuple(map(int, found.groups())) if found else None


def takes_exec_form(claude: tuple[int, ...] | None) -> bool:
    """Does this Claude Code start a hook without a shell? An unknown one is taken to be new."""
    return claude is None or claude >= EXEC_FORM_SINCE
