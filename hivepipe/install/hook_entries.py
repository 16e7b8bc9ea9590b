"""What Claude Code is told to run on each event."""

import re
import shlex
from enum import Enum
from typing import Any, NamedTuple

TIMEOUT_SECS = 5
SESSION_END_SECS = 2  # all its hooks share 1.5 s unless the settings say more
# The user's own copy comes first: pip replaces `hivepipe-hook` while it upgrades the package.
_BY_NAME = (
    "h=${XDG_STATE_HOME:-$HOME/.local/state}; h=/${h#/}/hivepipe/hooks/default/hook; "
    '[ -x "$h" ] || h=$(command -v hivepipe-hook) && exec "$h"'
)
Entry = dict[str, Any]


class Form(Enum):
    """How a hook is started."""

    EXEC = "without a shell"
    SHELL = "through a shell"  # Claude Code before 2.1.139 knows nothing else
    SHARED = "by a path that names no user, and silently not at all where hivepipe is missing"
    PLUGIN = "from the plugin's own folder, which moves with each version"


class Event(NamedTuple):
    """An event of Claude Code that has a hook."""

    name: str
    matcher: str = ""

    @property
    def script(self) -> str:
        """Return the name of the executable, without `.py`."""
        return re.sub(r"(?<!^)([A-Z])", r"_\1", self.name).lower()


EVENTS = (
    Event("SessionStart"),
    Event("UserPromptSubmit"),
    Event("UserPromptExpansion"),
    Event("PreToolUse", "*"),
    Event("PostToolUse", "*"),
    Event("PostToolUseFailure"),
    Event("SubagentStart"),
    Event("SubagentStop"),
    Event("PreCompact"),
    Event("Stop"),
    Event("StopFailure"),
    Event("SessionEnd"),
)


def entry(event: Event, form: Form, launcher: str = "") -> Entry:
    """Return the entry of one event; `launcher` is the program of an installation."""
    handler: dict[str, Any] = {"type": "command"}
    if form is Form.EXEC:
        handler |= {"command": launcher, "args": [event.script]}
    elif form is Form.SHELL:
        handler["command"] = f"{shlex.quote(launcher)} {event.script}"
    elif form is Form.SHARED:
        handler["command"] = f"{_BY_NAME} {event.script}; exit 0"
    else:
        run = 'plugin="${CLAUDE_PLUGIN_ROOT}/hooks/plugin.sh"; [ -f "$plugin" ] && . "$plugin"'
        handler["command"] = f"hook={event.script}; {run}; exit 0"
    handler["timeout"] = SESSION_END_SECS if event.name == "SessionEnd" else TIMEOUT_SECS
    matcher = {"matcher": event.matcher} if event.matcher else {}
    return {**matcher, "hooks": [handler]}


def plugin_hooks() -> dict[str, Any]:
    """Return what the plugin's `hooks/hooks.json` holds."""
    entries = {event.name: [entry(event, Form.PLUGIN)] for event in EVENTS}
    return {"description": "hands every event over in the background", "hooks": entries}
