"""The hook entries in the settings of Claude Code, one per event."""

import re
import shlex
from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

from hivepipe.events.other_events import ASKS_A_PERSON
from hivepipe.stack import hook_copy

TIMEOUT_SECS = 5
SESSION_END_SECS = 2  # all hooks of SessionEnd share 1.5 s unless the settings set a timeout
# The user's own copy comes first: pip replaces `hivepipe-hook` during an upgrade of the package.
BY_NAME = (
    "h=${XDG_STATE_HOME:-$HOME/.local/state}; h=/${h#/}/hivepipe/hooks/default/hook; "
    '[ -x "$h" ] || h=$(command -v hivepipe-hook) && exec "$h"'
)
Entry = dict[str, Any]
Version = tuple[int, ...]
OLDEST_WITH_PLUGIN = (2, 1, 132)  # older versions do not load a plugin with an unknown event


class Form(Enum):
    """A way to start a hook. The value of the member describes it."""

    EXEC = "without a shell"
    SHELL = "through a shell"
    SHARED = "by a path without a user's name; it does nothing where hivepipe is not installed"
    PLUGIN = "from the plugin's own folder, which moves with each version"


class Event(NamedTuple):
    """An event of Claude Code that has a hook; `since` is a version that supports the event.

    Older versions may support it, too. If `since` is (), every 2.1 version supports the event.
    """

    name: str
    matcher: str = ""
    since: Version = ()

    @property
    def script(self) -> str:
        return re.sub(r"(?<!^)([A-Z])", r"_\1", self.name).lower()


EVENTS = (
    Event("SessionStart"),
    Event("UserPromptSubmit"),
    Event("UserPromptExpansion", since=(2, 1, 118)),
    Event("PreToolUse", "*"),
    Event("PostToolUse", "*"),
    Event("PostToolUseFailure"),
    Event("PostToolBatch", since=(2, 1, 118)),
    Event("PermissionRequest", "*"),
    Event("PermissionDenied", "*", since=(2, 1, 92)),
    Event("Notification", "|".join(ASKS_A_PERSON)),
    Event("PostModelSwitch", since=(2, 1, 251)),
    Event("SubagentStart"),
    Event("SubagentStop"),
    Event("PreCompact"),
    Event("Stop"),
    Event("StopFailure", since=(2, 1, 78)),
    Event("SessionEnd"),
)


_OF_CODEX = (  # Codex CLI 0.169.0
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
    *("SubagentStart", "SubagentStop", "PreCompact", "Stop", "SessionEnd"),
)
CODEX_EVENTS = tuple(event for event in EVENTS if event.name in _OF_CODEX)


def events_of(claude: Version | None) -> tuple[Event, ...]:
    """Return the events that this version supports, or those of all versions if it is unknown.

    Versions before 2.1.101 ignore a settings file that names an event unknown to them.
    """
    return tuple(event for event in EVENTS if event.since <= (claude or ()))


def form_for(launcher: str) -> Form:
    """Return the form in which this program is started.

    Claude Code before 2.1.139, Copilot CLI and others ignore `args` and pass the command to a
    shell. So EXEC is used only for a path that a shell reads as one word. Without `args`, the
    program finds the event's name in the payload.
    """
    return Form.EXEC if shlex.quote(launcher) == launcher else Form.SHELL


def entry(event: Event, form: Form, launcher: str = "") -> Entry:
    """Return the hook entry of one event. `launcher` is the hook program of an installation."""
    handler: dict[str, Any] = {"type": "command"}
    if form is Form.EXEC:
        handler |= {"command": launcher, "args": [event.script]}
    elif form is Form.SHELL:
        handler["command"] = f"{shlex.quote(launcher)} {event.script}"
    elif form is Form.SHARED:
        handler["command"] = f"{BY_NAME} {event.script}; exit 0"
    else:
        run = 'plugin="${CLAUDE_PLUGIN_ROOT}/hooks/plugin.sh"; [ -f "$plugin" ] && . "$plugin"'
        handler["command"] = f"hook={event.script}; {run}; exit 0"
    handler["timeout"] = SESSION_END_SECS if event.name == "SessionEnd" else TIMEOUT_SECS
    matcher = {"matcher": event.matcher} if event.matcher else {}
    return {**matcher, "hooks": [handler]}


def entries_of(events: Iterable[Event], form: Form) -> dict[str, Entry]:
    """Return event -> the entry that runs this installation's hook."""
    launcher = hook_copy.launcher()
    return {event.name: entry(event, form, launcher) for event in events}


def plugin_hooks() -> dict[str, Any]:
    """Return the content of the plugin's `hooks/hooks.json`."""
    known = events_of(OLDEST_WITH_PLUGIN)
    entries = {event.name: [entry(event, Form.PLUGIN)] for event in known}
    return {"description": "hands every event over in the background", "hooks": entries}
