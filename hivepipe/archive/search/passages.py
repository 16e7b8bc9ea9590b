"""The searchable text of one transcript line: messages, tool calls and results."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hivepipe.archive.search.own_calls import NO_USES, ToolUses, tool_uses
from hivepipe.events.claude_code import clean
from hivepipe.transcripts.lines import (
    Fields,
    blocks,
    message_text,
    moment,
    part,
    read_line,
    text,
    typed,
)
from hivepipe.transcripts.users_words import is_prompt

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
SUMMARY = "hivepipe-summary"  # type of a line that contains a summary by hivepipe
ROLES = ("user", "claude", "tool", "title", "summary")


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one line, its author (user, claude, tool, title, summary) and its time."""

    who: str
    time: str
    words: str
    uses: ToolUses = NO_USES


def passage_of(raw: bytes) -> Passage | None:
    """Return a line's text, or None if the line has no text to search.

    Raises ValueError if the line is not a JSON object or is nested too deeply.
    """
    if not raw.strip():
        return None
    line = read_line(raw)
    if line is None:
        raise ValueError("not a readable JSON object")
    kind = text(line, "type")
    if kind in _TITLES:
        who, found = "title", [text(line, _TITLES[kind], cap=1 << 16)]
    elif kind == SUMMARY:
        who, found = "summary", [*_leaves(line.get("said"))]
    elif kind in ("assistant", "user"):
        who, found = _of_message(line, part(line, "message"))
    else:
        return None
    words = clean("\n".join(filter(None, found)))
    return Passage(who, moment(line), words, tool_uses(line)) if words.strip() else None


def _of_message(line: Fields, message: Fields) -> tuple[str, list[str]]:
    content = message.get("content")
    if isinstance(content, str):
        return _author(line, message), [content]
    found = [block for block in typed(message, "content", list) if isinstance(block, dict)]
    return _author(line, message), [words for block in found for words in _of_block(block)]


def _author(line: Fields, message: Fields) -> str:
    """Return who wrote a message: user, claude or tool, which includes Claude Code itself."""
    if line["type"] == "assistant":
        return "claude"
    is_result = any(blocks(message, "tool_result"))
    return "user" if not is_result and is_prompt(line, message_text(message)) else "tool"


def _of_block(block: Fields) -> Iterator[str]:
    match block.get("type"):
        case "text":
            yield from _leaves(block.get("text"))
        case "thinking":
            yield from _leaves(block.get("thinking"))
        case "tool_use":
            yield from _leaves(block.get("name"))
            yield from _leaves(block.get("input"))
            yield text(block, "id")
        case "tool_result":
            content = block.get("content")
            for item in content if isinstance(content, list) else [content]:
                # An image is megabytes of base64 without any text.
                if not (isinstance(item, dict) and item.get("type") == "image"):
                    yield from _leaves(item.get("text") if isinstance(item, dict) else item)
            yield text(block, "tool_use_id")


def _leaves(value: Any) -> Iterator[str]:
    """Yield every text in a value, in order, without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += reversed(item.values())
        elif isinstance(item, list):
            waiting += reversed(item)
