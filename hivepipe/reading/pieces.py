"""Split a transcript line into the pieces of a conversation: messages, calls, results."""

import difflib
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from hivepipe.events.claude_code import clean, is_machine_made
from hivepipe.transcripts.lines import Fields, id_of, moment, part, text
from hivepipe.transcripts.usage import is_api_error

MOST_CHARS = 40_000  # of one piece; longer texts are cut
MOST_DIFF_LINES = 200
LARGEST_DIFFED_CHARS = 200_000  # comparing longer texts takes too long
LONGEST_LABEL = 120
_INDENTED = orjson.OPT_INDENT_2

USER, CLAUDE, THINKING, CALL, RESULT, FAILURE, NOTE, AGENT = (
    "user",
    "claude",
    "thinking",
    "call",
    "result",
    "failure",
    "note",
    "agent",
)
# The input fields that describe a call; the first one present is shown.
_NAMES = (
    "file_path",
    "notebook_path",
    "command",
    "description",
    "pattern",
    "query",
    "url",
    "skill",
    "path",
    "subject",
    "prompt",
)


class Piece(NamedTuple):
    """One piece; `id` is that of a call, or of the agent whose conversation follows.

    `of`: the call that it answers, if that is not the previous piece. `arguments`: those of a call
    that neither its text nor its diff shows in full.
    """

    kind: str
    text: str
    at: str = ""  # UTC, in the store's format
    offset: int = 0  # of the first byte of its line
    depth: int = 0  # 1: of a subagent, 2: of a subagent of a subagent
    id: str = ""
    diff: tuple[str, ...] = ()
    of: str = ""
    is_hit: bool = False
    arguments: str = ""


def pieces_of(line: Fields) -> Iterator[Piece]:
    """Yield the pieces of a line; none if it is not part of the conversation."""
    at = moment(line)
    for piece in _pieces(line):
        yield piece._replace(at=at, text=_capped(piece.text))


def _pieces(line: Fields) -> Iterator[Piece]:
    message = part(line, "message")
    match line.get("type"):
        case "assistant":
            yield from _of_claude(line, message)
        case "user":
            yield from _of_user(line, message)
        case "system" if line.get("subtype") == "compact_boundary":
            yield Piece(NOTE, "the conversation was compacted")


def _of_claude(line: Fields, message: Fields) -> Iterator[Piece]:
    kind = FAILURE if is_api_error(line) else CLAUDE
    for block in _blocks(message):
        match block.get("type"):
            case "text" if _text(block, "text").strip():
                yield Piece(kind, _text(block, "text"))
            case "thinking" if _text(block, "thinking").strip():
                yield Piece(THINKING, _text(block, "thinking"))
            case "tool_use":
                yield _call(block)


def _call(block: Fields) -> Piece:
    arguments = part(block, "input")
    name = text(block, "name") or "tool"
    kind = text(arguments, "subagent_type")
    title = " ".join(filter(None, (name, kind, _label(arguments))))
    diff = _diff(arguments)
    more = "" if diff else _capped(_spelled_out(arguments, title))
    return Piece(CALL, title, id=text(block, "id"), diff=diff, arguments=more)


def _spelled_out(arguments: Fields, title: str) -> str:
    """Return the arguments that a title does not have in full, one below the other."""
    said = ((name, _as_text(value)) for name, value in arguments.items())
    return clean("\n".join(f"{name}: {value}" for name, value in said if value not in title))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=_INDENTED).decode()
    except TypeError:  # lone surrogates, large numbers, or nested too deeply
        return "…"


def _label(arguments: Fields) -> str:
    """Return the description of a call on one line; a long path is cut at its start."""
    key = next((each for each in _NAMES if _text(arguments, each)), "")
    label = " ".join(_text(arguments, key).split())
    if len(label) <= LONGEST_LABEL:
        return label
    return f"…{label[-LONGEST_LABEL:]}" if "path" in key else f"{label[:LONGEST_LABEL]}…"


def _of_user(line: Fields, message: Fields) -> Iterator[Piece]:
    is_refused = bool(text(line, "toolDenialKind"))
    agent = id_of(part(line, "toolUseResult"), "agentId")
    for block in _blocks(message):
        match block.get("type"):
            case "text" if _text(block, "text").strip():
                yield Piece(_kind_of_words(line, block), _text(block, "text"))
            case "image":
                yield Piece(USER, "[image]")
            case "tool_result":
                failed = block.get("is_error") is True or is_refused
                kind = FAILURE if failed else RESULT
                yield Piece(kind, _answer(block), id=text(block, "tool_use_id"))
                if agent:
                    yield Piece(AGENT, agent, id=agent)


def _kind_of_words(line: Fields, block: Fields) -> str:
    """Return USER for a person's text, NOTE for one that Claude Code wrote."""
    is_own = line.get("isMeta") is True or line.get("isCompactSummary") is True
    return NOTE if is_own or is_machine_made(_text(block, "text")) else USER


def _answer(block: Fields) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return clean(content)
    found = []
    for item in content if isinstance(content, list) else []:
        if isinstance(item, dict):
            found.append("[image]" if item.get("type") == "image" else _text(item, "text"))
    return "\n".join(filter(None, found))


def _blocks(message: Fields) -> Iterator[Fields]:
    content = message.get("content")
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return clean(value) if isinstance(value, str) else ""


def _capped(whole: str) -> str:
    if len(whole) <= MOST_CHARS:
        return whole
    return f"{whole[:MOST_CHARS]}\n[{len(whole) - MOST_CHARS:,} more characters]"


# ---- file changes of a call


def _diff(arguments: Fields) -> tuple[str, ...]:
    """Return the lines that Edit, MultiEdit or Write removes (-) and adds (+)."""
    edits = arguments.get("edits")
    each = [*filter(_is_edit, edits if isinstance(edits, list) else ()), arguments]
    lines = [line for edit in each for line in _changed(edit)]
    if len(lines) > MOST_DIFF_LINES:
        more = len(lines) - MOST_DIFF_LINES
        lines = [*lines[:MOST_DIFF_LINES], f"  [{more:,} more lines]"]
    return tuple(lines)


def _is_edit(edit: Any) -> bool:
    return isinstance(edit, dict)


def _changed(edit: Fields) -> list[str]:
    content = _text(edit, "content") or _text(edit, "new_source")
    if content:
        return [f"+ {line}" for line in content.splitlines()]
    old, new = _text(edit, "old_string"), _text(edit, "new_string")
    if len(old) + len(new) > LARGEST_DIFFED_CHARS:
        return [f"- {line}" for line in old.splitlines()] + [
            f"+ {line}" for line in new.splitlines()
        ]
    return [*_compared(old.splitlines(), new.splitlines())]


def _compared(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield kept lines, and what replaced what; similar lines are not looked for: that is slow."""
    matcher = difflib.SequenceMatcher(None, old, new)
    for tag, begin, end, new_begin, new_end in matcher.get_opcodes():
        if tag == "equal":
            yield from (f"  {line}" for line in old[begin:end])
        else:
            yield from (f"- {line}" for line in old[begin:end])
            yield from (f"+ {line}" for line in new[new_begin:new_end])
