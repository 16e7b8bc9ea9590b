"""Parse one line of a transcript, which may have any content, into fields.

The format is Claude Code's own and changes often. Unknown fields are kept, and a field of the wrong
type counts as missing.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson

from hivepipe.events.claude_code import clean, valid_id
from hivepipe.transcripts.codex import is_codex, translated
from hivepipe.transcripts.users_words import as_message, is_queued_prompt

Fields = dict[str, Any]
Kind = TypeVar("Kind")

CAP_NAME = 200
CAP_PATH = 4096
CAP_TEXT = 2000
LARGEST_COUNT = 1 << 40  # SQLite can add millions of these without an overflow
_LARGEST_TIME = 1 << 53


def read_line(raw: bytes) -> Fields | None:
    """Return the fields of one line in Claude Code's format, or None if it is not a JSON object."""
    value = read_object(raw)
    if value is None:
        return None
    if is_codex(value):
        return translated(value)
    return as_message(value) if is_queued_prompt(value) else value


def read_object(raw: bytes) -> Fields | None:
    """Return the members of a JSON object that another program wrote, or None for other text."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _read_leniently(raw)
    return value if isinstance(value, dict) else None


def _read_leniently(raw: bytes) -> object:
    """Parse JSON that JavaScript writes and orjson refuses: lone surrogates, NaN, huge numbers."""
    try:
        return json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def text(fields: Fields, key: str, cap: int = CAP_NAME) -> str:
    """Return a text field, cleaned and cut to the cap, or "" if the field is missing."""
    value = fields.get(key)
    return clean(value[:cap]) if isinstance(value, str) else ""


def typed(fields: Fields, key: str, kind: type[Kind]) -> Kind:
    """Return a field, or the empty value of `kind` if the field is missing or of another type."""
    value = fields.get(key)
    return value if isinstance(value, kind) else kind()


def id_of(fields: Fields, key: str) -> str:
    """Return a valid id, or "" if the field is missing or invalid."""
    value = fields.get(key)
    return valid_id(value) if isinstance(value, str) else ""


def part(fields: Fields, key: str) -> Fields:
    """Return a field that is an object, or {} if it is missing."""
    return typed(fields, key, dict)


def count(fields: Fields, key: str) -> int:
    """Return a count, or 0 if the field is missing or invalid."""
    return _below(LARGEST_COUNT, fields.get(key))


def unix_ms(fields: Fields, key: str) -> int:
    """Return a time in milliseconds since 1970, or 0 if the field is missing or invalid."""
    return _below(_LARGEST_TIME, fields.get(key))


def _below(limit: int, value: object) -> int:
    return value if type(value) is int and 0 <= value < limit else 0


def blocks(message: Fields, kind: str) -> Iterator[Fields]:
    """Yield the content blocks of one kind; a message that is a string is one text block."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") == kind:
                yield block


def message_text(message: Fields, cap: int = CAP_TEXT) -> str:
    texts = (text(block, "text", cap) for block in blocks(message, "text"))
    return "\n\n".join(filter(None, texts))[:cap]


def moment(line: Fields) -> str:
    """Return the time of a line in the store's format, or "" if the line has no time."""
    value = line.get("timestamp")
    if not isinstance(value, str):
        return ""
    try:
        at = datetime.fromisoformat(value)
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return ""
    # Not strftime: it writes the year 99 with two digits, which cannot be parsed again.
    return f"{at.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
