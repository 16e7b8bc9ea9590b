"""Hooks that run as Claude Code's plugin.

If the settings contain the same hooks, each event arrives twice, and the plugin's hooks ignore it.
The plugin cannot install the package. While the package is missing, events are spooled, and a
starting session shows what is missing.

Only hooks of the plugin import this module.
"""

import posix
import sys
import time

from hivepipe import settings
from hivepipe.home import Place, locate, read_small, user_folder
from hivepipe.hook.instance import marked_by_settings, this_instance

OLDEST = 0x030B0000  # Python 3.11
_SETTINGS_BYTES = 1 << 18
KEPT_SECS = 14 * 86_400  # the default of `[retention]`, which is not applied without the package
_PROGRAM = "/hook"  # the program that hivepipe.stack.hook_copy writes
_NAMES = ("settings.local.json", "settings.json")


def has_nothing_to_do(name: str) -> bool:
    """Tell whether hooks of the settings handle this event, or this Python is too old."""
    return sys.hexversion < OLDEST or _runs_by_settings(name)


def _runs_by_settings(name: str) -> bool:
    """Tell whether the settings' hooks ran for this Claude Code and still include this event.

    Both conditions are checked, because Claude Code may skip the project's settings
    (`--setting-sources`), and the settings may have been edited.
    """
    project = settings.environment("CLAUDE_PROJECT_DIR")
    if not project:
        return False
    home = locate(project).home
    if not marked_by_settings(home, this_instance(home)):
        return False
    folder = settings.environment("CLAUDE_CONFIG_DIR") or f"{user_folder()}/.claude"
    paths = [*[f"{project}/.claude/{each}" for each in _NAMES], f"{folder}/settings.json"]
    return any([_runs(read_small(path, _SETTINGS_BYTES), _script(name)) for path in paths])


def _script(name: str) -> str:
    """Convert a name such as SessionStart to session_start."""
    return "".join([f"_{c.lower()}" if c.isupper() else c for c in name])[1:]


def _runs(text: str, script: str) -> bool:
    """Tell whether a settings file's text has a hook of hivepipe whose program exists.

    A hook given by its name or through a shell is not found. Then the plugin's hook also processes
    the event, and the duplicate is dropped, which only takes longer.
    """
    wanted = f'","args":["{script}"]'
    end = text.find(_PROGRAM)
    while end >= 0:
        end += len(_PROGRAM)
        if "".join(text[end : end + 200].split()).startswith(wanted):
            path = text[text.rfind('"', 0, end) + 1 : end]
            return "/hivepipe/hooks/" in path and posix.access(path, posix.X_OK)
        end = text.find(_PROGRAM, end)
    return False


def unfinished(place: Place) -> str:
    """Return the line that says how to complete the installation, or "" if it is complete."""
    if place.python and posix.access(place.python, posix.X_OK):
        return ""
    if not place.python:
        _drop_old_events(place)
    text = "hivepipe keeps this session's events on disk; to have them recorded, run"
    return f"{text}: {_command(sys.argv[2:3] == ['copy'])}"


def _drop_old_events(place: Place) -> None:
    """Delete spooled events older than 14 days. Without the package, nothing would apply them."""
    oldest = f"{time.time_ns() - KEPT_SECS * 10**9:020d}"
    folder = f"{place.home}/spool"
    try:
        names = [name for name in posix.listdir(folder) if name[:20].isdigit() and name < oldest]
        for name in names:
            posix.unlink(f"{folder}/{name}")
    except OSError:  # a file cannot be deleted, or another session deleted it
        return
    if names:
        from hivepipe.files.hook_log import log_line  # noqa: PLC0415  once in two weeks

        events = "1 event" if len(names) == 1 else f"{len(names)} events"
        text = f"{events} dropped after waiting 14 days for the package"
        log_line(place.logs, "SessionStart", "WARNING", text)


def _command(is_copy: bool) -> str:
    """Return the command that completes the installation.

    With `is_copy` the command also installs the package, from the plugin's copy.
    """
    if not is_copy:
        return "hivepipe init --user"
    copy = __file__.rsplit("/", 3)[0].replace("'", "'\\''")
    venv = "~/.local/venvs/hivepipe"
    pip = f"{venv}/bin/pip install"
    steps = (
        f"python3 -m venv {venv}",
        f"{pip} --require-hashes -r '{copy}/requirements.lock'",
        f"{pip} --no-deps --no-build-isolation '{copy}'",
        f"{venv}/bin/hivepipe init --user",
    )
    return " && ".join(steps)
