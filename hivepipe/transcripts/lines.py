"""One line of a transcript: bytes in, fields out, whatever is in them.

The format is Claude Code's own and changes often: what is not known passes, what has the wrong
type counts as missing.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from hivepipe.events import clean, valid_id
from hivepipe.transcripts.codex import is_codex, translated

Fields = dict[str, Any]

CAP_NAME = 200
CAP_PATH = 4096
CAP_TEXT = 2000


def read_line(raw: bytes) -> Fields | None:
    """Return the fields of one line, in the words of Claude Code; None: it is no JSON object."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _read_leniently(raw)
    if not isinstance(value, dict):
        return None
    return translated(value) if is_codex(value) else value


def _read_leniently(raw: bytes) -> object:
    """Read what orjson refuses and JavaScript writes: halves of emoji, NaN, huge numbers."""
    try:
        return json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def text(fields: Fields, key: str, cap: int = CAP_NAME) -> str:
    """Return a text, storable and no longer than the cap; empty where there is none."""
    value = fields.get(key)
    return clean(value[:cap]) if isinstance(value, str) else ""


def id_of(fields: Fields, key: str) -> str:
    """Return a valid id; empty where there is none."""
    value = fields.get(key)
    return valid_id(value) if isinstance(value, str) else ""


def part(fields: Fields, key: str) -> Fields:
    """Return an object; empty where there is none."""
    value = fields.get(key)
    return value if isinstance(value, dict) else {}


def count(fields: Fields, key: str) -> int:
    """Return a count; 0 where there is none."""
    value = fields.get(key)
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def blocks(message: Fields, kind: str) -> Iterator[Fields]:
    """Yield the content blocks of one kind; a message that is one text is one block of text."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") == kind:
                yield block


def said(message: Fields, cap: int = CAP_TEXT) -> str:
    """Return the text of a message."""
    texts = (text(block, "text", cap) for block in blocks(message, "text"))
    return "\n\n".join(filter(None, texts))[:cap]


def moment(line: Fields) -> str:
    """Return when a line was written: UTC, milliseconds, as the store writes times; or empty."""
    value = line.get("timestamp")
    if not isinstance(value, str):
        return ""
    try:
        at = datetime.fromisoformat(value)
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return ""
    # Not strftime: its year 99 has two digits, and nobody reads that again.
    return f"{at.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
