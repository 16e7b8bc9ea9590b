"""Split a transcript line into the pieces of a conversation: messages, calls, results."""

import difflib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from hivepipe.events.claude_code import clean
from hivepipe.transcripts.lines import Fields, id_of, moment, part, text, typed
from hivepipe.transcripts.usage import is_api_error
from hivepipe.transcripts.users_words import is_output, is_typed

MOST_CHARS = 40_000  # characters kept of one piece
MOST_DIFF_LINES = 200
LARGEST_DIFFED_CHARS = 200_000  # comparing longer texts takes too long
LONGEST_LABEL = 120
_LOCAL_TAG = re.compile("</?(local-command|bash)-[a-z]+>")
_BASH, _BASH_END = "<bash-input>", "</bash-input>"  # around a shell command of the user
_COMMAND_TAG = re.compile(r"<command-([a-z]+)>(.*?)</command-\1>", re.DOTALL)
_LONGEST_COMMAND = 20_000  # the search for the parts of a command takes quadratic time

USER, CLAUDE, THINKING, CALL = "user", "claude", "thinking", "call"
RESULT, FAILURE, NOTE, AGENT = "result", "failure", "note", "agent"
# The input fields that describe a call; the first one present is shown.
_NAMES = (
    *("file_path", "notebook_path", "command", "description", "pattern", "query"),
    *("url", "uri", "skill", "path", "subject", "prompt"),
)


class Piece(NamedTuple):
    """One piece of a conversation: a message, a call, a result or a note.

    `id` is the id of a call, or of the agent whose conversation follows. `of` is the id of the call
    that a result belongs to, if this call is not the previous piece. `arguments` has those
    arguments of a call that text and diff of the piece do not show in full.
    """

    kind: str
    text: str
    at: str = ""  # time in UTC, in the store's format
    offset: int = 0  # offset of the first byte of its line
    depth: int = 0  # 1 for a subagent's piece, 2 for one of its subagents, and so on
    id: str = ""
    diff: tuple[str, ...] = ()
    of: str = ""
    is_hit: bool = False
    arguments: str = ""


def pieces_of(line: Fields) -> Iterator[Piece]:
    """Yield the pieces of a line. A line that is no part of the conversation has no pieces."""
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
    """Return the arguments that a title does not contain in full, one per line."""
    texts = ((name, _as_text(value)) for name, value in arguments.items())
    return clean("\n".join(f"{name}: {value}" for name, value in texts if value not in title))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and _is_todo(value[0]):
        return "".join(f"\n{_todo(each)}" for each in value)
    return _dumped(value, orjson.OPT_INDENT_2)


def _is_todo(value: object) -> bool:
    named = value if isinstance(value, dict) else {}
    return all(isinstance(named.get(name), str) for name in ("content", "status"))


def _todo(value: Any) -> str:
    """Return one entry of a to-do list on one line."""
    return f"[{value['status']}] {value['content']}" if _is_todo(value) else _dumped(value)


def _dumped(value: object, option: int = 0) -> str:
    try:
        return orjson.dumps(value, option=option).decode()
    except TypeError:  # the value has lone surrogates or large numbers, or is nested too deeply
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
                yield _words(line, _text(block, "text"))
            case "image" | "document":
                yield Piece(USER, _shown(block))
            case "tool_result":
                failed = block.get("is_error") is True or is_refused
                kind = FAILURE if failed else RESULT
                yield Piece(kind, _answer(block), id=text(block, "tool_use_id"))
                if agent:
                    yield Piece(AGENT, agent, id=agent)


def _words(line: Fields, words: str) -> Piece:
    """Return a text as a piece of the kind USER or, if Claude Code wrote it, NOTE."""
    if is_typed(line, words):
        return Piece(USER, _command(words) or words)
    output = _LOCAL_TAG.sub("", words) if is_output(words) else words
    return Piece(NOTE, _unescaped(output) if words.startswith("<bash-") else output)


def _unescaped(output: str) -> str:
    """Undo Claude Code's escaping in the output of a shell command."""
    return output.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _command(words: str) -> str:
    """Return a slash or shell command as the user typed it, or "" for any other text."""
    if words.startswith(_BASH) and words.endswith(_BASH_END):
        return f"! {words.removeprefix(_BASH).removesuffix(_BASH_END)}"
    if not words.lstrip().startswith("<command-") or len(words) > _LONGEST_COMMAND:
        return ""
    parts = {name: value.strip() for name, value in _COMMAND_TAG.findall(words)}
    name = parts.get("name", "").removeprefix("/")
    command = f"/{name} {parts.get('args', '')}".rstrip()
    return "\n".join(filter(None, (command, parts.get("contents")))) if name else ""


def _answer(block: Fields) -> str:
    return "\n".join(filter(None, map(_shown, _blocks(block))))


def _shown(block: Fields) -> str:
    """Return the text of a block; for another kind without text, "[<its tool, else its kind>]"."""
    kind = text(block, "type")
    other = "" if kind in ("", "text") else f"[{text(block, 'tool_name') or kind}]"
    return _text(block, "text") or other


def _blocks(message: Fields) -> Iterator[Fields]:
    if isinstance(content := message.get("content"), str):
        yield {"type": "text", "text": content}
    yield from (each for each in typed(message, "content", list) if isinstance(each, dict))


def _text(fields: Fields, key: str) -> str:
    return clean(typed(fields, key, str))


def _capped(whole: str) -> str:
    if len(whole) <= MOST_CHARS:
        return whole
    return f"{whole[:MOST_CHARS]}\n[{len(whole) - MOST_CHARS:,} more characters]"


# ---- file changes of a call


def _diff(arguments: Fields) -> tuple[str, ...]:
    """Return the lines that Edit, MultiEdit or Write removes (-) and adds (+).

    After MOST_DIFF_LINES lines, one line has the number of the others.
    """
    edits = [edit for edit in typed(arguments, "edits", list) if isinstance(edit, dict)]
    lines = [line for edit in [*edits, arguments] for line in _changed(edit)]
    if len(lines) > MOST_DIFF_LINES:
        more = len(lines) - MOST_DIFF_LINES
        lines = [*lines[:MOST_DIFF_LINES], f"  [{more:,} more lines]"]
    return tuple(lines)


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
    """Yield kept, removed and added lines; replaced lines are not compared, as that is slow."""
    matcher = difflib.SequenceMatcher(None, old, new)
    for tag, begin, end, new_begin, new_end in matcher.get_opcodes():
        if tag == "equal":
            yield from (f"  {line}" for line in old[begin:end])
        else:
            yield from (f"- {line}" for line in old[begin:end])
            yield from (f"+ {line}" for line in new[new_begin:new_end])
