"""hivepipe's status line in the settings of Claude Code. It also runs the previous status line.

    "statusLine": {"type": "command", "command": "<hook> statusline '<command>'"}

The previous command is the argument of `statusline`. A second argument `elsewhere` means that the
previous command comes from another settings file. A command of the user that runs hivepipe's status
line, for example in a pipe or by another path, is kept.
"""

import re
import shlex
from typing import Any

from hivepipe.errors import SettingsError
from hivepipe.install import json_text
from hivepipe.install.hook_entries import BY_NAME, Form

KEY = "statusLine"
_ELSEWHERE = "elsewhere"
_HOOK = "/hivepipe/hooks/[^/ ]+/hook"
_RUN = re.compile(rf"""(?:{_HOOK}'?|"\$h") statusline\b""")
_PLAIN = rf"/[\w@%+=:,./-]*{_HOOK}"  # paths as shlex.quote writes them
_QUOTED = rf"""'/(?:[^']|'"'"')*{_HOOK}'"""
_OURS = re.compile(
    rf"(?:{_PLAIN}|{_QUOTED}|{re.escape(BY_NAME)}) statusline(?: (.+))?", re.ASCII | re.DOTALL
)


def command_of(text: str) -> str:
    """Return the user's command in the status line of a settings file, or "" if it has none.

    A command that runs hivepipe's status line is left out, because it would be shown twice.
    Raises SettingsError if the status line is not a command.
    """
    entry = _entry(text)
    behind = _behind(entry["command"]) if entry else []
    if behind is None:
        return "" if _RUN.search(entry["command"]) else str(entry["command"])
    return behind[0] if len(behind) == 1 else ""


def has_ours(text: str) -> bool:
    """Tell whether the status line is as `with_status_line` writes it."""
    try:
        entry = _entry(text)
    except SettingsError:
        return False
    return bool(entry) and _behind(entry["command"]) is not None


def with_status_line(text: str, form: Form, launcher: str, elsewhere: str) -> str:
    """Return the text with hivepipe's status line.

    `elsewhere` is the status line command of another settings file, which this file overrides.
    Raises SettingsError if the text has a status line that is not a command.
    """
    entry = _entry(text)
    own = _behind(entry["command"]) if entry else []
    if own is None and _RUN.search(entry["command"]):
        return text
    if own is None:
        own = [entry["command"]]
    behind = own if len(own) == 1 else [elsewhere, _ELSEWHERE] if elsewhere else []
    start = BY_NAME if form is Form.SHARED else shlex.quote(launcher)
    command = f"{start} {shlex.join(['statusline', *behind])}"
    if entry:
        return json_text.replace(text, (KEY, "command"), command)
    return json_text.append(text, (), {"type": "command", "command": command}, KEY)


def without_status_line(text: str) -> str:
    """Return the settings text with the previous status line instead of hivepipe's."""
    try:
        entry = _entry(text)
    except SettingsError:
        return text
    behind = _behind(entry["command"]) if entry else None
    if behind is None:
        return text
    if len(behind) == 1:
        return json_text.replace(text, (KEY, "command"), behind[0])
    return json_text.remove(text, (KEY,))


def _entry(text: str) -> dict[str, Any]:
    settings = json_text.parse(text)
    entry = settings.get(KEY) if isinstance(settings, dict) else None
    if entry is None:
        return {}
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        raise SettingsError("has a status line that is not a command")
    if entry.get("type", "command") != "command":
        raise SettingsError("has a status line that is not a command")
    return entry


def _behind(command: str) -> list[str] | None:
    """Return the arguments of hivepipe's command, or None for another program's command."""
    ours = _OURS.fullmatch(command)
    if not ours:
        return None
    text = ours[1] or ""
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark is not closed
        return None
    is_as_written = shlex.join(words) == text and words[1:] in ([], [_ELSEWHERE])
    return words if is_as_written else None
