"""Edits of a text, and functions that apply them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """The replacement of the range `start:end`, and the rule that caused it."""

    start: int
    end: int
    replacement: bytes
    rule: str


def edited(text: bytes, edits: Sequence[Edit]) -> bytes:
    """Return the text with all edits applied. The edits are in order and do not overlap."""
    parts: list[bytes] = []
    done = 0
    for edit in edits:
        parts += (text[done : edit.start], edit.replacement)
        done = edit.end
    return b"".join((*parts, text[done:]))


def edited_lines(text: bytes, edits: Sequence[Edit]) -> Iterator[tuple[bytes, tuple[str, ...]]]:
    """Yield each line with its edits applied, and the edits' rules. A removed line is empty."""
    waiting = list(reversed(edits))
    done = start = 0
    while start < len(text):
        end = text.find(b"\n", start) + 1 or len(text)
        parts: list[bytes] = []
        rules: list[str] = []
        while waiting and waiting[-1].start < end:
            edit = waiting.pop()
            parts += (text[done : edit.start], edit.replacement)
            rules.append(edit.rule)
            done = edit.end
        parts.append(text[done:end])
        done = max(done, end)
        yield b"".join(parts), tuple(rules)
        start = end
