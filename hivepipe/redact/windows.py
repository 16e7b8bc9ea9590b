"""Redact a text of any length in overlapping windows.

A window finds a secret of many lines as a whole, and the memory used does not grow.
"""

from collections.abc import Callable, Iterator

from hivepipe.redact.edit import Edit, edited_lines

WINDOW_BYTES = 256 << 10
# Bytes at the end of a window and before its start that are searched but not written.
MARGIN_BYTES = 32 << 10
CONTEXT_BYTES = 4 << 10

_ENDS = {b"{": b"}", b"[": b"]", b'"': b'"'}


def is_record(line: bytes, in_text: bool) -> bool:
    """Tell whether the line looks like a JSON value. With `in_text`, only an object counts."""
    end = _ENDS.get(line[:1])
    return end is not None and line.rstrip().endswith(end) and (end == b"}" or not in_text)


class Windows:
    """A redactor of a text that is added line by line."""

    def __init__(self, find: Callable[[bytes], list[Edit]]) -> None:
        """Create windows without lines. `find` returns the edits of a text, in order."""
        self._find = find
        self._written = b""  # the end of the text that was already written
        self._lines: list[bytes] = []
        self._bytes = 0

    def __bool__(self) -> bool:
        """Tell whether lines were added that are not yielded yet."""
        return bool(self._lines)

    def add(self, line: bytes) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Add a line, and yield the redacted lines of each full window."""
        self._lines.append(line)
        self._bytes += len(line)
        while self._bytes >= WINDOW_BYTES:
            yield from self._redact(is_end=False)

    def end(self) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Yield the remaining lines, redacted. After that, lines of another text can be added."""
        if self._lines:
            yield from self._redact(is_end=True)
        self._written = b""

    def _redact(self, is_end: bool) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        waiting = b"".join(self._lines)
        taken = waiting if is_end else waiting[:WINDOW_BYTES]
        context = len(self._written)
        window = self._written + taken
        edits = [edit for edit in self._find(window) if edit.end > context]
        end = len(window) if is_end else _last_cut(window, edits, context)
        here = [
            edit._replace(start=max(edit.start - context, 0), end=edit.end - context)
            for edit in edits
            if edit.start < end
        ]
        self._written = _whole_words(window[max(0, end - CONTEXT_BYTES) : end])
        rest = waiting[end - context :]
        self._lines = [rest] if rest else []
        self._bytes = len(rest)
        yield from edited_lines(window[context:end], here)


def _last_cut(window: bytes, edits: list[Edit], context: int) -> int:
    """Return where a text may be cut: after a line or space if possible, never inside an edit."""
    latest = len(window) - MARGIN_BYTES
    ends = (window.rfind(mark, context, latest) + 1 for mark in (b"\n", b" "))
    cut = next(filter(None, ends), latest)
    for edit in edits:
        if edit.start < cut < edit.end:
            return edit.start if edit.start > context else edit.end
    return cut


def _whole_words(text: bytes) -> bytes:
    """Return a text without its first line, or without its first word if it has one line."""
    starts = (text.find(mark) + 1 for mark in (b"\n", b" "))
    return text[next(filter(None, starts), 0) :]
