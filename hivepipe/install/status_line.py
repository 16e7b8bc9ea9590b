"""The status line in the settings of Claude Code: ours, which runs the one that was there before.

    "statusLine": {"type": "command", "command": "<hook> statusline '<command>'"}

The command before stands behind ours. The word `elsewhere` behind it says that it is another
settings file's.
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
_OURS = re.compile(r"""(?:/hivepipe/hooks/[^/ ]+/hook'?|"\$h") statusline(?: (.+))?""", re.DOTALL)


def command_of(text: str) -> str:
    """Return the command of a settings file's status line without ours; "": it has none.

    SettingsError: it has one of another kind.
    """
    entry = _entry(apart(text)[1])
    words = _words(entry["command"]) if entry else []
    return words[0] if len(words) == 1 else ""


def with_status_line(text: str, form: Form, launcher: str, elsewhere: str) -> str:
    """Return the text with our status line; SettingsError: it has one of another kind.

    `elsewhere`: the command of another settings file, which ours takes precedence over.
    """
    bom, text = apart(text)
    entry = _entry(text)
    own = _words(entry["command"]) if entry else []
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
    ours = _OURS.search(entry["command"]) if entry else None
    if not ours:
        return bom + text
    match _words(entry["command"]):
        case [before]:
            return bom + json_text.replace(text, (KEY, "command"), before)
    return bom + json_text.remove(text, (KEY,))


def _entry(text: str) -> dict[str, Any]:
    settings = json_text.parse(text) if text.strip() else {}
    entry = settings.get(KEY) if isinstance(settings, dict) else None
    if entry is None:
        return {}
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        raise SettingsError("has a status line that is no command")
    return entry


def _words(command: str) -> list[str]:
    """Return the words behind ours; of another's, the command itself."""
    ours = _OURS.search(command)
    return shlex.split(ours[1] or "") if ours else [command]
