"""What Claude Code is told to run on each event, and how our entries are known again."""

import re
import shlex
from enum import Enum
from typing import Any, NamedTuple

TIMEOUT_SECS = 5
SESSION_END_SECS = 2  # all its hooks share 1.5 s unless the settings say more
MARK = "# hivepipe"
# Claude Code shows a hook that cannot start on every tool call: the entry itself says what to do.
HINT = f"{MARK}: if this fails, run 'hivepipe init' again or delete this entry"
# Python exits with 2 over a script that is gone, and 2 blocks every tool call and erases prompts.
START = """import sys
try:
    hook = open(sys.argv[1], "rb")
except OSError:
    sys.exit()
__file__ = sys.argv[1]
exec(hook.read())
"""

Entry = dict[str, Any]


class Form(Enum):
    """How a hook is started."""

    EXEC = "without a shell"
    SHELL = "through a shell"  # Claude Code before 2.1.139 knows nothing else
    SHARED = "by name, and silently not at all where hivepipe is missing"
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


def entry(event: Event, form: Form, python: str, hooks: str) -> Entry:
    """Return the entry of one event; `python` is the real interpreter, `hooks` their folder."""
    script = f"{hooks}/{event.script}.py"
    handler: dict[str, Any] = {"type": "command"}
    if form is Form.EXEC:
        handler |= {"command": python, "args": ["-I", "-S", "-c", START, script, HINT]}
    elif form is Form.SHELL:
        run = shlex.join((python, "-I", "-S", script))
        there = f"[ -x {shlex.quote(python)} ] && [ -r {shlex.quote(script)} ]"
        handler["command"] = f"{there} && exec {run} || exit 0 {HINT}"
    elif form is Form.SHARED:
        run = f'h=$(command -v hivepipe-hook) && exec "$h" {event.script}; exit 0'
        handler["command"] = f"{run} {MARK}"
    else:
        run = 'plugin="${CLAUDE_PLUGIN_ROOT}/hooks/plugin.sh"; [ -f "$plugin" ] && . "$plugin"'
        handler["command"] = f"hook={event.script}; {run}; exit 0"
    handler["timeout"] = SESSION_END_SECS if event.name == "SessionEnd" else TIMEOUT_SECS
    matcher = {"matcher": event.matcher} if event.matcher else {}
    return {**matcher, "hooks": [handler]}


def plugin_hooks() -> dict[str, Any]:
    """Return what the plugin's `hooks/hooks.json` holds."""
    entries = {event.name: [entry(event, Form.PLUGIN, "", "")] for event in EVENTS}
    return {"description": "hands every event over in the background", "hooks": entries}


def is_ours(handler: object) -> bool:
    """Is this handler one that `entry` made, of whatever version and form?"""
    if not isinstance(handler, dict):
        return False
    words = handler.get("args")
    words = words if isinstance(words, list) else []
    return any(isinstance(word, str) and MARK in word for word in (handler.get("command"), *words))
