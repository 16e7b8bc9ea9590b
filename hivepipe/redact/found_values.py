"""Recognise a secret in any context once it was found in a session; no secret is stored.

Of each secret, 128 bits of an HMAC, the length and a sketch are stored. The sketch is made of a run
of letters, digits, `_` or `-` in the value. The run has at most 16 characters, and at most half of
a long value. Each character is mapped to one of four symbols, by a mapping that depends on the key.
To search a text, all its bytes are mapped, all sketches are searched in one pass, and the
candidates are hashed. The time is linear in the length of the text, and zero if no value is known.

    <digest> <length> <offset of the sketch> <sketch> <0 or 1> <kind>    one line of text each

The digit is 1 if the value has a character that JSON inside JSON escapes.
"""

import hmac
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from hashlib import shake_256
from typing import NamedTuple

import re2

from hivepipe.redact.escapes import OutOfTimeError
from hivepipe.redact.randomness import looks_random
from hivepipe.redact.scanner import compiled

MOST = 512  # values per session, at most half from one list; each value slows every search
SHORTEST_BYTES, LONGEST_BYTES = 8, 1024
_SKETCH_BYTES, _LEAST_SKETCH_BYTES = 16, 4
_SHORT_SKETCH_BYTES = 8
_AT_ONCE = 256  # number of candidates between two checks of the time limit
_PLAIN = re.compile(rb"[A-Za-z0-9_-]+")  # bytes that JSON, URLs and HTML do not escape
_ESCAPED = re.compile(rb"[^ !#-.0-\[\]-~]")
# Ids of Claude Code and UUIDs: every line has some, and they are not secret.
_ID = re.compile(
    rb"(?:toolu|msg|req|call|chatcmpl)_.*|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_WORD = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")  # one word of an identifier
_OF_DIGITS = re.compile(rb"[0-9a-f]+|[0-9A-Z]+")
_LONGEST_NAME_BYTES = 32
_LONG_BYTES = 20  # shortest value without a digit
_LONG_PASSWORD_BYTES = 10
_KINDS = [re.compile(kind) for kind in (rb"[a-z]", rb"[A-Z]", rb"[0-9]", rb"[!#$%^&*+?~@]")]
_CODE = re.compile(rb"[(){}<>\[\]/]|::|->|=>")
_LINE = re.compile(
    r"([0-9a-f]{32}) (\d{1,4}) (\d{1,4}) ([0-3]{4,16}) ([01]) ([a-zA-Z][a-zA-Z -]{0,40})"
)


class FoundValue(NamedTuple):
    """The data that is stored about one secret value, without the value itself."""

    digest: bytes
    length: int
    at: int  # offset in the value of the characters that the sketch is made of
    sketch: bytes
    is_escaped: bool  # the value has a character that is escaped in JSON inside JSON
    kind: str

    def text(self) -> str:
        """Return the data about the value as one line of text."""
        where = f"{self.length} {self.at} {self.sketch.decode()} {self.is_escaped:d}"
        return f"{self.digest.hex()} {where} {self.kind}"


class FoundValues:
    """The secret values that were found in one session."""

    def __init__(self, key: Callable[[], bytes], lines: Iterable[str] = ()) -> None:
        """Load values from valid `lines` (`FoundValue.text`); `key` is called when first needed."""
        self._ask = key
        self.all: list[FoundValue] = []
        self._numbers: dict[bytes, int] = {}  # digest -> index in `all`
        # Sketch -> (its offset in the value, length of the value) of each value with this sketch
        self._by_sketch: dict[bytes, set[tuple[int, int]]] = {}
        self._sizes: set[int] = set()
        self._patterns: dict[bool, re2._Regexp | None] = {}
        for line in lines:
            if found := _LINE.fullmatch(line):
                digest, length, at, sketch, mark, kind = found.groups()
                where = (int(length), int(at), sketch.encode())
                self._add(FoundValue(bytes.fromhex(digest), *where, mark == "1", kind))

    @cached_property
    def _key(self) -> bytes:
        return hmac.digest(self._ask(), b"learned", "sha256")

    @cached_property
    def _symbols(self) -> bytes:
        return bytes(48 + byte % 4 for byte in shake_256(self._key).digest(256))

    def learn(self, value: bytes, kind: str) -> bool:
        """Learn a value that is specific enough; return whether it was learned just now."""
        if len(self.all) >= MOST or not _is_specific(value):
            return False
        runs = sorted(_PLAIN.finditer(value), key=lambda run: run.start() - run.end())
        if not runs or len(runs[0][0]) < _LEAST_SKETCH_BYTES:
            return False
        most = min(_SKETCH_BYTES, max(len(value) // 2, _SHORT_SKETCH_BYTES))
        sketch = runs[0][0][:most].translate(self._symbols)
        where = (len(value), runs[0].start(), sketch)
        return self._add(
            FoundValue(self._digest(value), *where, bool(_ESCAPED.search(value)), kind)
        )

    def may_be_in(self, text: bytes, *, escaped: bool = False) -> bool:
        """Tell whether a known value may be in a text.

        With `escaped`, only values that JSON inside JSON escapes are searched.
        """
        sketches = self._sketches(escaped)
        return sketches is not None and bool(sketches.search(text.translate(self._symbols)))

    def find(self, text: bytes, deadline: float) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and number of each known value in a text, or raise OutOfTimeError."""
        sketches = self._sketches(escaped=False)
        if sketches is None:
            return
        symbols = text.translate(self._symbols)
        looks, found = 0, sketches.search(symbols)
        while found:
            looks += 1
            if not looks % _AT_ONCE and time.thread_time() > deadline:
                raise OutOfTimeError
            at = found.start()
            for size in self._sizes:
                for offset, length in self._by_sketch.get(symbols[at : at + size], ()):
                    start = at - offset
                    value = text[start : start + length] if start >= 0 else b""
                    number = self._numbers.get(self._digest(value)) if value else None
                    if number is not None and len(value) == length:
                        yield start, start + length, number
            found = sketches.search(symbols, at + 1)

    def _sketches(self, escaped: bool) -> "re2._Regexp | None":
        """Return a pattern of the sketches, or None if there are none.

        With `escaped`, the pattern has only sketches of values that JSON inside JSON escapes.
        """
        if escaped not in self._patterns:
            sketches = {known.sketch for known in self.all if known.is_escaped or not escaped}
            pattern = b"|".join(sorted(sketches)).decode()
            self._patterns[escaped] = compiled(pattern, "learned") if pattern else None
        return self._patterns[escaped]

    def _add(self, known: FoundValue) -> bool:
        if known.digest in self._numbers:
            return False
        self._numbers[known.digest] = len(self.all)
        self._by_sketch.setdefault(known.sketch, set()).add((known.at, known.length))
        self._sizes.add(len(known.sketch))
        self._patterns.clear()
        self.all.append(known)
        return True

    def _digest(self, value: bytes) -> bytes:
        return hmac.digest(self._key, value, "sha256")[:16]


def specific(values: Iterable[bytes]) -> list[bytes]:
    """Return the values of one list that may be learned: at most half of a session's."""
    found: dict[bytes, None] = {}
    for value in values:
        if len(found) < MOST // 2 and _is_specific(value):
            found[value] = None
    return list(found)


def _is_specific(value: bytes) -> bool:
    """Tell whether a value is specific: not a word, number, name, id or address."""
    if not SHORTEST_BYTES <= len(value) <= LONGEST_BYTES or b"***" in value or _ID.fullmatch(value):
        return False
    return (looks_random(value) and not _is_name(value)) or _is_of_all_kinds(value)


def _is_name(value: bytes) -> bool:
    """Tell whether a value may be an identifier, such as _AzureApiKeyT or Ed448PublicKey."""
    words = _WORD.findall(value)
    may_be_longer = len(value) >= _LONGEST_NAME_BYTES or _OF_DIGITS.fullmatch(value)
    # Average length of the words
    if sum(map(len, words)) > (4 if may_be_longer else 3) * len(words):
        return True
    return len(value) < _LONG_BYTES and not any(word.isdigit() for word in words)


def _is_of_all_kinds(value: bytes) -> bool:
    """Tell whether a long value has upper and lower case, digits and other characters.

    A value with brackets, slashes or operators of source code does not count.
    """
    is_long = len(value) >= _LONG_PASSWORD_BYTES
    return is_long and all(kind.search(value) for kind in _KINDS) and not _CODE.search(value)
