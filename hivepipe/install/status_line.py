"""The status line in the settings of Claude Code: ours, which runs the one that was there before.

    "statusLine": {"type": "command", "command": "<hook> statusline '<command>'"}

The command before stands behind ours. The word `elsewhere` behind it says that it is another
settings file's. A command of the user's that runs ours, such as in a pipe, is the user's: it stays.
"""

import re
import shlex
from typing import Any

from hivepipe.errors import SettingsError
from hivepipe.install import json_text
from hivepipe.install.hook_entries import BY_NAME, Form
from hivepipe.install.settings_text import apart

KEY = "statusLine"
_ELSEWHERE = "elsewhere"
_START = r"""(?:/hivepipe/hooks/[^/ ]+/hook'?|"\$h") statusline"""
_RUN = re.compile(rf"{_START}\b")
_OURS = re.compile(rf"{_START}(?: (.+))?\Z", re.DOTALL)  # alone


def command_of(text: str) -> str:
    """Return the command of a settings file's status line without ours; "": it has none.

    SettingsError: it has one of another kind.
    """
    entry = _entry(apart(text)[1])
    behind = _behind(entry["command"]) if entry else []
    if behind is None:
        return str(entry["command"])
    return behind[0] if len(behind) == 1 else ""


def has_ours(text: str) -> bool:
    """Tell whether the status line is as `with_status_line` writes it."""
    try:
        entry = _entry(apart(text)[1])
    except SettingsError:
        return False
    return bool(entry) and _behind(entry["command"]) is not None


def with_status_line(text: str, form: Form, launcher: str, elsewhere: str) -> str:
    """Return the text with our status line; SettingsError: it has one of another kind.

    `elsewhere`: the command of another settings file, which ours takes precedence over.
    """
    bom, text = apart(text)
    entry = _entry(text)
    own = _behind(entry["command"]) if entry else []
    if own is None and _RUN.search(entry["command"]):
        return bom + text
    if own is None:
        own = [entry["command"]]
    behind = own if len(own) == 1 else [elsewhere, _ELSEWHERE] if elsewhere else []
    start = BY_NAME if form is Form.SHARED else shlex.quote(launcher)
    command = f"{start} {shlex.join(['statusline', *behind])}"
    if entry:
        return bom + json_text.replace(text, (KEY, "command"), command)
    return bom + json_text.append(text, (), {"type": "command", "command": command}, KEY)


def without_status_line(text: str) -> str:
    """Return the text with the status line that was there before ours."""
    bom, text = apart(text)
    try:
        entry = _entry(text)
    except SettingsError:
        return bom + text
    behind = _behind(entry["command"]) if entry else None
    if behind is None:
        return bom + text
    if len(behind) == 1:
        return bom + json_text.replace(text, (KEY, "command"), behind[0])
    return bom + json_text.remove(text, (KEY,))


def _entry(text: str) -> dict[str, Any]:
    try:
        settings = json_text.parse(text) if text.strip() else {}
    except json_text.NotJsonError as error:
        raise SettingsError(f"is not valid JSON: {error}") from None
    entry = settings.get(KEY) if isinstance(settings, dict) else None
    if entry is None:
        return {}
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        raise SettingsError("has a status line that is no command")
    if entry.get("type", "command") != "command":
        raise SettingsError("has a status line that is no command")
    return entry


def _behind(command: str) -> list[str] | None:
    """Return the words behind ours; None: the command is not as we write it."""
    ours = _OURS.search(command)
    if not ours:
        return None
    text = ours[1] or ""
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark is open
        return None
    is_as_written = shlex.join(words) == text and words[1:] in ([], [_ELSEWHERE])
    return words if is_as_written else None
