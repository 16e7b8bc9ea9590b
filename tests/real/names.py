"""Names that the client uses: events and fields, transcript lines and keys, tools and arguments.

A set of names is a dict: group -> keys. A group is a kind and a name: `event Stop`, `tool Bash`,
`line system/compact_boundary`, `attachment hook_success`, `message assistant`, `message usage`,
`content tool_use`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Names = dict[str, set[str]]
# A list of event names inside the client's program. The longest such list has all events.
_LIST = re.compile(rb'\[(?:"[A-Z]\w{2,40}",){4,}"[A-Z]\w{2,40}"\]')
_OF_A_SCHEMA = "StructuredOutput"  # The schema of this tool comes from `--json-schema`.
_CHUNK_BYTES, _OVERLAP_BYTES = 1 << 24, 1 << 14


def merged(many: Iterable[Mapping[str, Iterable[str]]]) -> Names:
    """Return the union of several sets of names."""
    found: Names = {}
    for names in many:
        for group, keys in names.items():
            found.setdefault(group, set()).update(keys)
    return found


def of_payload(payload: Mapping[str, Any]) -> Names:
    found: Names = {f"event {payload.get('hook_event_name')}": set(payload)}
    return merged([found, _tool(payload.get("tool_name"))])


def of_line(line: Mapping[str, Any]) -> Names:
    """Return the names in a line of a transcript."""
    subtype = f"/{line['subtype']}" if line.get("subtype") else ""
    found: list[Names] = [{f"line {line.get('type')}{subtype}": set(line)}]
    attached = line.get("attachment")
    if isinstance(attached, dict):
        found.append({f"attachment {attached.get('type')}": set(attached)})
    message = line.get("message")
    if isinstance(message, dict):
        found += _of_message(message)
    return merged(found)


def of_request(body: Mapping[str, Any]) -> Names:
    """Return the tools that a request offers, with the names of their arguments."""
    return merged(
        _tool(tool.get("name"), tool.get("input_schema", {}).get("properties", ()))
        for tool in body.get("tools") or ()
    )


def declared_events(program: Path) -> tuple[str, ...]:
    """Return the events that a client declares: the longest list of event names in its program.

    The list is found by searching the native program for text. It is empty if there is none.
    """
    lists = (tuple(re.findall(r"\w+", raw.decode())) for raw in _lists(program))
    ours = [names for names in lists if {"PreToolUse", "SessionStart"} <= {*names}]
    return max(ours, key=len, default=())


def _lists(program: Path) -> Iterator[bytes]:
    with program.open("rb") as file:
        behind = b""
        while chunk := file.read(_CHUNK_BYTES):
            text = behind + chunk
            yield from _LIST.findall(text)
            behind = text[-_OVERLAP_BYTES:]


def _of_message(message: Mapping[str, Any]) -> Iterator[Names]:
    yield {f"message {message.get('role')}": set(message)}
    usage, content = message.get("usage"), message.get("content")
    if isinstance(usage, dict):
        yield {"message usage": set(usage)}
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        yield {f"content {block.get('type')}": set(block)}
        if block.get("type") == "tool_use":
            yield _tool(block.get("name"))


def _tool(name: object, arguments: Iterable[str] = ()) -> Names:
    """Return the group of a tool of the client; tools of MCP servers are left out."""
    if not isinstance(name, str) or name.startswith("mcp__"):
        return {}
    return {f"tool {name}": set() if name == _OF_A_SCHEMA else set(arguments)}
