"""Decode the escapes of JSON strings, and map positions back to the original text."""

import re
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

import orjson

ESCAPES_AT_ONCE = 1 << 16  # number of escapes between two checks of the time limit

_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([^u]))",
    re.DOTALL,
)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}

_PIECE_BYTES = 4 << 10
# A cut after a match splits no escape, surrogate pair or character.
_CUT = re.compile(rb"[ -\[\]-~]{12}")


class OutOfTimeError(Exception):
    """The text needs more processor time than allowed."""


class Positions:
    """A decoded text, with a mapping of positions back to the original text."""

    def __init__(
        self,
        spelled: bytes,
        escapes: Iterable["re.Match[bytes]"],
        meaning: Callable[["re.Match[bytes]"], bytes],
        deadline: float,
    ) -> None:
        """Decode a text with escapes. Raise OutOfTimeError after `deadline` (processor time)."""
        parts: list[bytes] = []
        # Plain text and single escapes alternate. These are their starts in the decoded text ...
        self._starts = starts = array("Q", (0,))
        self._origins = origins = array("Q", (0,))  # ... and in the original text
        size = end = 0
        for number, escape in enumerate(escapes):
            if not number % ESCAPES_AT_ONCE and time.thread_time() > deadline:
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
        """Return the original range of a decoded range, without cutting an escape."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        return self._spelled(first, start), self._spelled(last, end, behind=True)

    def _spelled(self, stretch: int, offset: int, behind: bool = False) -> int:
        if stretch % 2:  # an escape: return its start, or its end if `behind`
            return self._origins[stretch + behind]
        return self._origins[stretch] + offset - self._starts[stretch]


class Reading:
    """Decoded JSON strings, with a mapping of positions back to the original text.

    orjson decodes the strings in pieces, ten times as fast as `Positions`. `Positions` decodes only
    pieces with a secret and pieces that orjson refuses. In a refused piece, half a surrogate pair
    becomes three bytes, and an incomplete or unknown escape stays unchanged.
    """

    def __init__(self, spelled: bytes, strings: Iterable[tuple[int, int]], deadline: float) -> None:
        """Decode the `strings`, ranges of `spelled`. Raise OutOfTimeError after `deadline`."""
        self._spelled = spelled
        self._deadline = deadline
        self._origins = array("Q")  # start of each piece in the original text ...
        self._starts = array("Q")  # ... and in the decoded text
        self._positions: dict[int, Positions] = {}
        parts: list[bytes] = []
        size = 0
        for start, end in _pieces(spelled, strings):
            self._origins.append(start)
            self._starts.append(size)
            parts.append(self._read(spelled[start:end]))
            size += len(parts[-1])
        self._origins.append(len(spelled))
        self.text = b"".join(parts)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the original range of a decoded range, without cutting an escape."""
        return self._origin(start)[0], self._origin(end - 1)[1]

    def _read(self, piece: bytes) -> bytes:
        if b"\\" not in piece:
            return piece
        try:
            return str(orjson.loads(b'"%s"' % piece)).encode()
        except orjson.JSONDecodeError:
            return self._exactly(len(self._starts) - 1, piece).text

    def _exactly(self, number: int, piece: bytes) -> Positions:
        known = self._positions.get(number)
        if known is None:
            escapes = _ESCAPE.finditer(piece)
            known = self._positions[number] = Positions(piece, escapes, _meant, self._deadline)
        return known

    def _origin(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._starts, at) - 1
        start, end = self._origins[number : number + 2]
        at -= self._starts[number]
        first, last = self._exactly(number, self._spelled[start:end]).origin(at, at + 1)
        return start + first, start + last


def _pieces(spelled: bytes, strings: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of strings and of the text between them; long ranges are cut."""
    behind = 0
    for start, end in strings:
        yield behind, start
        while end - start > _PIECE_BYTES and (
            cut := _CUT.search(spelled, start + _PIECE_BYTES, end)
        ):
            yield start, cut.end()
            start = cut.end()
        yield start, end
        behind = end
    yield behind, len(spelled)


def _meant(escape: "re.Match[bytes]") -> bytes:
    high, low, code, letter = escape.groups()
    if high:
        pair = 0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
        return chr(pair).encode()
    if code:
        return chr(int(code, 16)).encode("utf-8", "surrogatepass")
    return _LETTERS.get(letter, letter)
