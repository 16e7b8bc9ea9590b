"""Find the strings of a JSON line in its raw bytes, without parsing it into values.

So redaction changes nothing but secrets: numbers of any length, NaN, lone surrogates, repeated
keys, spaces and escapes stay unchanged.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Range = tuple[int, int]

_STRING = rb'"[^"]*+"'  # a string in the output of `plainly_quoted`
_REST = rb"[ \t\r\n{}\[\],:]++|-?(?:[0-9][0-9.eE+-]*+|Infinity)|true|false|null|NaN"
_JSON = re.compile(rb"(?:%s|%s)++" % (_STRING, _REST))
# A string followed by a colon is a key. Its value starts right after this match.
_TOKEN = re.compile(rb"(%s)([ \t\r\n]*+:[ \t\r\n]*+)?|%s" % (_STRING, _REST))

# "source": {"type": "base64", "media_type": "image/png", "data": "..."}, with keys in any order.
_BASE64 = rb"[A-Za-z0-9+/=]*+(?:\\/[A-Za-z0-9+/=]*+)*+"
_SOURCE = re.compile(
    rb'(?<!\\)"source"\s*:\s*\{'
    rb'(?:\s*(?:"data"\s*:\s*"(?P<data>%s)"|"[a-z_]+"\s*:\s*"[^"\\]*+")\s*,?)++\s*\}' % _BASE64
)
# The string before such a key may be the name of its value: {"name": "DB_PASSWORD", "value": "..."}
_KEYS_OF_VALUES = (b'"value"', b'"default"', b'"text"')
_STRINGS_BEFORE = 6
_BYTES_BEFORE = 256
_LONGEST_PHRASE = 1 << 12  # a longer value with blanks is a text, such as a message
_IS_BASE64 = re.compile(rb'"type"\s*:\s*"base64"')


class Leaf(NamedTuple):
    """A string of a JSON line, with its key if it has one. Key and value are searched together.

    The range includes the quotes. `strings` has the ranges between the quotes, with the value last.
    The value is also searched together with the strings from `named_from` on, because one of these
    may be the value's name.
    """

    start: int
    end: int
    strings: tuple[Range, ...]
    named_from: int  # equals `start` if no earlier string names the value


def plainly_quoted(line: bytes) -> bytes | None:
    """Return a JSON line of the same length, with its escaped quotes and backslashes replaced.

    Return None if the line does not consist of JSON tokens. The grammar is not checked.
    """
    quoted = line.replace(rb"\\", b"__").replace(rb"\"", b"__")
    return quoted if _JSON.fullmatch(quoted) else None


def leaves(line: bytes, quoted: bytes) -> Iterator[Leaf]:
    """Yield the strings of a JSON line, except image data."""
    images = _images(line) if b'"base64"' in line else frozenset()
    key: Range | None = None
    starts: deque[int] = deque(maxlen=_STRINGS_BEFORE + 2)  # + 2: the value and its key
    for token in _TOKEN.finditer(quoted):
        if token.lastindex:
            starts.append(token.start(1))
        if token.lastindex == 2:
            if key:
                yield _leaf(key)
            key = token.span(1)
        elif token.lastindex == 1:
            string = token.span(1)
            if string[0] not in images:
                yield _described(quoted, key, string, starts) if key else _leaf(string)
            key = None
        elif key:
            yield _leaf(key)
            key = None


def _leaf(*quoted: Range) -> Leaf:
    start, end = quoted[0][0], quoted[-1][1]
    return Leaf(start, end, tuple((start + 1, end - 1) for start, end in quoted), start)


def _described(quoted: bytes, key: Range, string: Range, starts: Iterable[int]) -> Leaf:
    leaf = _leaf(key, string)
    if quoted[slice(*key)].lower() not in _KEYS_OF_VALUES:
        return leaf
    start, end = string
    if end - start > _LONGEST_PHRASE and quoted.find(b" ", start, end) >= 0:  # prose
        return leaf
    return leaf._replace(named_from=next(at for at in starts if key[0] - at <= _BYTES_BEFORE))


def _images(line: bytes) -> frozenset[int]:
    """Return the start of each string with image data."""
    return frozenset(
        source.start("data") - 1
        for source in _SOURCE.finditer(line)
        if source.start("data") >= 0 and _IS_BASE64.search(line, *source.span())
    )
