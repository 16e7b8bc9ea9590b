"""Read a text through what stands between its characters, and what stands for them.

Colours and other escape sequences of terminals, characters without width, and the spellings of
JSON, of source code (`\\x67`, `\\147`), of URLs (`%67`) and of HTML (`&#103;`). One reading undoes
one level: what is spelled twice is read twice.
"""

import html
import math
import re
from functools import partial

from hivepipe.redaction.escapes import Positions

# RE2, in the raw bytes of a line: a text without any of these is what it seems to be.
DISGUISE = (
    r"\x1b|\xc2\x9b|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf|\xc2\xad|\xcd\x8f"
    r"|\\u00[0-7][0-9A-Fa-f]|\\u20[06]|\\u009[bB]|\\u[fF][eE][fF][fF]|\\u00[aA][dD]|\\u034[fF]|\\u\{"
    r"|\\x[0-7][0-9A-Fa-f]|\\[01][0-7]{2}|%[0-7][0-9A-Fa-f]|%E2%8|%e2%8"
    r"|&(?:#[0-9xX]|[A-Za-z]{2,9};)|\\[eE]\[|\^\[\[|\[[0-9;]{1,12}m"
)

# Every repetition is possessive: one pass, whatever the text.
_ESC = rb"(?:\x1b|\^\[|\\++(?:u001[bB]|x1[bB]|033|[eE])|%1[bB]|&#(?:27|[xX]1[bB]);)"
_SEQUENCE = (
    rb"(?:%s(?:\[|%%5[bB])|\xc2\x9b)[0-?]*+[ -/]*+[@-~]"
    % _ESC
    + rb"|\x1b\][^\x07\x1b]*+(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Z]|\x1b[78=>@-Z^_]"
    rb"|\[[0-9;]{1,12}+m"
)
_NO_WIDTH = rb"\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf|\xc2\xad|\xcd\x8f|\x1b"
_SPELLED = (
    rb"\\u([0-9A-Fa-f]{4})|\\u\{([0-9A-Fa-f]{1,6})\}"
    rb"|\\x([0-9A-Fa-f]{2})|%([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})|(&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,9});)"
    rb"|\\([nrtbf\"'/\\eE])"
)
_MARK = re.compile(rb"(%s)|(%s)|%s" % (_SEQUENCE, _NO_WIDTH, _SPELLED))
_HAS_SEQUENCE = re.compile(_SEQUENCE)
_BYTE = {5: 16, 6: 16, 7: 8}  # groups of `_MARK`, and how they write a byte
_ENTITY, _LETTER = 8, 9
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f", b"e": b"\x1b"}
_LETTERS[b"E"] = b"\x1b"


def has_sequence(text: bytes) -> bool:
    """Are there escape sequences of terminals in the text?"""
    return _HAS_SEQUENCE.search(text) is not None


def seen_through(text: bytes, between: bytes) -> bytes:
    """Return the text as it would be read, `between` in the place of each escape sequence."""
    return _MARK.sub(partial(_meant, between), text)


def positions(spelled: bytes, between: bytes, deadline: float = math.inf) -> Positions:
    """Return the same text with the way back to what it was read from."""
    return Positions(spelled, _MARK.finditer(spelled), partial(_meant, between), deadline)


def _meant(between: bytes, mark: re.Match[bytes]) -> bytes:
    """Return what a mark stands for."""
    number = mark.lastindex or 0
    if number <= 2:
        return between if number == 1 else b""
    said = mark[number]
    if number in _BYTE:  # perhaps one of several that are one character
        return bytes((int(said, _BYTE[number]),))
    if number == _ENTITY:
        return html.unescape(said.decode()).encode("utf-8", "surrogatepass")
    if number == _LETTER:
        return _LETTERS.get(said, said)
    return chr(min(int(said, 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
