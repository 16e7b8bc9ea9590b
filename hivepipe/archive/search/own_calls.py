"""Recognise calls of hivepipe's own commands and tools in transcripts.

The index marks these calls, because their results repeat texts of other lines.
"""

import re
from typing import NamedTuple

from hivepipe.transcripts.lines import Fields, part, text

# `hivepipe` as the first word of a simple command, with or without its folder. No part of the
# pattern reads beyond the start of the next command, so that the time is linear.
_COMMAND = re.compile(r"(?:^|[;&|(\n`])[^\S\n]*(?:[^\s;&|(`]*/)?hivepipe(?:\s|$)")
_SKILL = re.compile(r"hivepipe(?::|$)")
_TOOL = re.compile(r"mcp__(?:plugin_hivepipe_)?hivepipe__")  # a tool of `hivepipe mcp`
_LONGEST_COMMAND = 1 << 16


class ToolUses(NamedTuple):
    """The tool calls in one line.

    own       ids of the calls of hivepipe
    answered  ids of the calls whose results are in the line
    is_mixed  whether the line has other text or other calls, too
    begun     id and tool of each call
    """

    own: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    is_mixed: bool = True
    begun: tuple[tuple[str, str], ...] = ()


NO_USES = ToolUses()


def tool_uses(line: Fields) -> ToolUses:
    """Return the tool calls that a transcript's line begins, or whose results it has."""
    content = part(line, "message").get("content")
    blocks = content if isinstance(content, list) else []
    calls = [each for each in blocks if isinstance(each, dict)]
    own = tuple(text(call, "id") for call in calls if _is_own(call))
    answered = [text(each, "tool_use_id") for each in calls if each.get("type") == "tool_result"]
    if not answered and (source := text(line, "sourceToolUseID")):
        return ToolUses((), (source,), is_mixed=False)  # the text of a skill
    is_mixed = len(own) + len(answered) < len(blocks) or not blocks
    begun = [(text(each, "id"), text(each, "name")) for each in calls if _is_call(each)]
    return ToolUses(own, tuple(answered), is_mixed, tuple(begun))


def _is_call(block: Fields) -> bool:
    return block.get("type") == "tool_use"


def _is_own(block: Fields) -> bool:
    """Tell whether a block calls a command, a skill or a tool of hivepipe."""
    if not _is_call(block):
        return False
    arguments, name = part(block, "input"), text(block, "name")
    match name:
        case "Bash":
            return bool(_COMMAND.search(text(arguments, "command", cap=_LONGEST_COMMAND)))
        case "Skill":
            return bool(_SKILL.match(text(arguments, "skill")))
    return bool(_TOOL.match(name))
