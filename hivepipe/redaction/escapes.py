"""Read a text that JSON spells with escapes, and find the way back to its spelling."""

import math
import re
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable

import orjson

_ESCAPES_AT_ONCE = 1 << 16  # between two looks at the clock

_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|([^u]))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}


class OutOfTimeError(Exception):
    """The text takes more time than it may."""


def plain(spelled: bytes, is_member: bool) -> bytes | None:
    """Return a string, or a key and its string, without escapes; None if orjson refuses it.

    Ten times as fast as `unescaped`, and without a way back.
    """
    try:
        if not is_member:
            return str(orjson.loads(spelled)).encode()
        ((key, value),) = orjson.loads(b"{%s}" % spelled).items()
        return f'"{key}": "{value}"'.encode()
    except orjson.JSONDecodeError:
        return None


class Positions:
    """A text that was read from a spelling, and the way back to it."""

    def __init__(
        self,
        spelled: bytes,
        escapes: Iterable["re.Match[bytes]"],
        meaning: Callable[["re.Match[bytes]"], bytes],
        deadline: float,
    ) -> None:
        """Read; OutOfTimeError once this thread has used more processor time than it may."""
        parts: list[bytes] = []
        # Stretches that take turns, plain text and one escape: where each starts in the text ...
        self._starts = starts = array("Q", (0,))
        self._origins = origins = array("Q", (0,))  # ... and in the spelling
        size = end = 0
        for number, escape in enumerate(escapes):
            if not number % _ESCAPES_AT_ONCE and time.thread_time() > deadline:
                raise OutOfTimeError
            meant = meaning(escape)
            start = escape.start()
            parts += (spelled[end:start], meant)
            size += start - end
            end = escape.end()
            starts.extend((size, size + len(meant)))
            origins.extend((start, end))
            size += len(meant)
        parts.append(spelled[end:])
        self.text = b"".join(parts)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where the range `start:end` of the text is spelled; an escape is never cut."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        return self._spelled(first, start), self._spelled(last, end, behind=True)

    def _spelled(self, stretch: int, offset: int, behind: bool = False) -> int:
        if stretch % 2:  # an escape: its beginning, or what stands behind it
            return self._origins[stretch + behind]
        return self._origins[stretch] + offset - self._starts[stretch]


def unescaped(spelled: bytes, deadline: float = math.inf) -> Positions:
    """Return a text without its escapes; what is broken or unknown stays as it is.

    Half a surrogate pair becomes three bytes of its own.
    """
    return Positions(spelled, _ESCAPE.finditer(spelled), _meant, deadline)


def _meant(escape: "re.Match[bytes]") -> bytes:
    code, letter = escape.groups()
    if code:
        return chr(int(code, 16)).encode("utf-8", "surrogatepass")
    return _LETTERS.get(letter, letter)
