"""JSON that is safe to show: control and invisible characters are escaped."""

import json

from hivepipe.text.visible import is_harmless


def printable_json(document: str) -> str:
    """Return JSON with control characters as JSON escapes; its parsed value stays the same."""
    lines = document.split("\n")
    return "\n".join(map(_line, lines))


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _line(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    return "".join(map(_in_json, line))


def _in_json(char: str) -> str:
    if is_harmless(char):
        return char
    if char in "\t\r":  # between values: inside a value these are escaped already
        return " "
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
