"""Hooks that run as Claude Code's plugin.

Settings may name the same hooks; then these have the event twice, and the plugin's leave it to
them. And the plugin may be there without its package, which it cannot install: until then events
are kept on disk, and a session that starts says what is missing.

On the hook path, for the plugin's hooks only.
"""

import posix
import sys
import time

from hivepipe import settings
from hivepipe.home import Place, locate, read_small, user_folder
from hivepipe.intake.instance import marked_by_settings, this_instance

OLDEST = 0x030B0000  # Python 3.11
_SETTINGS_BYTES = 1 << 18
KEPT_SECS = 14 * 86_400  # as `[retention]` has it, which nobody applies without the package
_PROGRAM = "/hook"  # hivepipe.stack.hook_copy
_NAMES = ("settings.local.json", "settings.json")


def has_nothing_to_do(name: str) -> bool:
    """Is this event taken by hooks of the settings, or this Python too old for the hook path?"""
    return sys.hexversion < OLDEST or _runs_by_settings(name)


def _runs_by_settings(name: str) -> bool:
    """Did hooks of the settings run for this Claude Code, and do they still for this event?

    Both, for it may read no settings of the project (`--setting-sources`), or they were edited.
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
    """Return SessionStart as session_start."""
    return "".join([f"_{c.lower()}" if c.isupper() else c for c in name])[1:]


def _runs(text: str, script: str) -> bool:
    """Do these settings name a program of ours for the event, and is it there?

    Hooks by name or behind a shell are not looked for: with those the event counts once, too, and
    only takes longer.
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
    """Return the line that says how the installation is completed; empty if it is."""
    if place.python and posix.access(place.python, posix.X_OK):
        return ""
    if not place.python:
        _drop_old_events(place)
    said = "hivepipe keeps this session's events on disk; to have them recorded, run"
    return f"{said}: {_command(sys.argv[2:3] == ['copy'])}"


def _drop_old_events(place: Place) -> None:
    """Keep the spool of somebody who never installs the package from growing for ever."""
    oldest = f"{time.time_ns() - KEPT_SECS * 10**9:020d}"
    folder = f"{place.home}/spool"
    names = [name for name in posix.listdir(folder) if name[:20].isdigit() and name < oldest]
    for name in names:
        posix.unlink(f"{folder}/{name}")
    if names:
        from hivepipe.hook_log import log_line  # noqa: PLC0415  once in two weeks

        events = "1 event" if len(names) == 1 else f"{len(names)} events"
        text = f"{events} dropped after waiting 14 days for the package"
        log_line(place.logs, "SessionStart", "WARNING", text)


def _command(is_copy: bool) -> str:
    """Return the one command: it installs the package from this very copy, if that is missing."""
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
