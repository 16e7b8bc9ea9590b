"""Edit a JSON text in place. Every byte outside the edit stays the same.

Parsing and dumping would lose indentation, escapes and line ends. This module adds a value after
the last value of its container, with the same layout, and removes a value together with its comma.
The text may begin with a byte order mark.

A path names a value: keys of objects and indexes of arrays, from the root.
"""

import json
import re
from typing import Any, NamedTuple

from hivepipe.errors import SettingsError
from hivepipe.files.regular_file import BYTE_ORDER_MARK

Path = tuple[str | int, ...]

_SPACE = re.compile(rf"{BYTE_ORDER_MARK}?[ \t\r\n]*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # UTF-8 cannot encode one
_STEP = "  "
_MOST_DIGITS = 4300


class _Item(NamedTuple):
    """A member of a JSON object, or an element of an array, by its positions in the text."""

    key: str | int
    start: int
    value: int
    end: int


def _no_constant(word: str) -> Any:
    raise _invalid(f"{word} is not JSON")


def _invalid(why: str) -> SettingsError:
    return SettingsError(f"is not valid JSON: {why}")


def _whole_number(digits: str) -> int | float:
    """Convert an integer. A long one becomes a float, because Python refuses over 4,300 digits."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_whole_number, parse_constant=_no_constant)


def parse(text: str) -> Any:
    """Parse as strictly as JSON.parse; "" gives {}. Raises SettingsError with the position."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    if not text.strip():
        return {}
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _invalid(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _invalid("nested too deep") from None


def append(text: str, container: Path, value: object, key: str = "") -> str:
    """Return the text with a value added at the end of an object (under `key`) or array."""
    opening = _position(text, container)
    items = _items(text, opening)
    new = (f"{json.dumps(key)}: " if key else "") + json.dumps(value)
    if items:
        at = items[-1].end
        return text[:at] + "," + _space_before(text, items[-1].start, opening) + new + text[at:]
    closing = _skip(text, opening + 1)
    outer = _line_break(text, opening)
    if outer is None:
        return text[: opening + 1] + new + text[closing:]
    return text[: opening + 1] + outer + _step(text) + new + outer + text[closing:]


def replace(text: str, path: Path, value: object) -> str:
    """Return the text with a value replaced; if the old value is ASCII, the new one is, too."""
    at = _position(text, path)
    _, end = _DECODER.raw_decode(text, at)
    new = json.dumps(value, ensure_ascii=text[at:end].isascii())
    return text[:at] + _LONE_SURROGATE.sub(_escape, new) + text[end:]


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def remove(text: str, path: Path) -> str:
    """Return the text without the member or element at `path`."""
    opening = _position(text, path[:-1])
    items = _items(text, opening)
    # Of duplicate keys the last one counts.
    number = max(number for number, item in enumerate(items) if item.key == path[-1])
    if len(items) == 1:
        return text[: opening + 1] + text[_skip(text, items[0].end) :]
    if number == 0:
        return text[: items[0].start] + text[items[1].start :]
    return text[: items[number - 1].end] + text[items[number].end :]


def _position(text: str, path: Path) -> int:
    """Return the position where the value of this path begins."""
    at = _skip(text, 0)
    for key in path:
        at = [item.value for item in _items(text, at) if item.key == key][-1]
    return at


def _items(text: str, opening: int) -> list[_Item]:
    """Return the items of an object or array in a valid JSON text."""
    found: list[_Item] = []
    is_object = text[opening] == "{"
    at = _skip(text, opening + 1)
    while text[at] not in "]}":
        start = at
        key: str | int = len(found)
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # the value comes after the colon
        _, end = _DECODER.raw_decode(text, at)
        found.append(_Item(key, start, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _space_before(text: str, start: int, opening: int) -> str:
    """Return the white space to insert before a new item that follows the item at `start`."""
    at = start
    while text[at - 1] in " \t\r\n":
        at -= 1
    is_first_of_a_line = at - 1 == opening and at == start
    return " " if is_first_of_a_line else text[at:start]


def _line_break(text: str, opening: int) -> str | None:
    """Return the line break and indentation of a bracket's line.

    Return None for a one-line text with members.
    """
    is_one_line = "\n" not in text.strip()
    if is_one_line and _items(text, _skip(text, 0)):
        return None
    newline = "\r\n" if "\r\n" in text else "\n"
    line = text[text.rfind("\n", 0, opening) + 1 : opening]
    return newline + line[: len(line) - len(line.lstrip(" \t"))]


def _step(text: str) -> str:
    """Return one level of the text's indentation."""
    items = _items(text, _skip(text, 0))
    before = text[: items[0].start] if items else ""
    indent = before[before.rfind("\n") + 1 :] if "\n" in before else ""
    return indent if indent and not indent.strip() else _STEP
