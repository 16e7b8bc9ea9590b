r"""Decode a text in which escapes or invisible characters may disguise a secret.

Colours, other escape sequences of terminals, and zero-width characters are removed. The escapes of
JSON, of source code (`\x67`, `\147`), of URLs (`%67`) and of HTML (`&#103;`) are decoded. One call
decodes one level of escapes.
"""

import html
import math
import re
import time

from hivepipe.redact.escapes import ESCAPES_AT_ONCE, OutOfTimeError, Positions

# RE2 pattern for the raw bytes of a line. A text without a match has no disguise.
DISGUISE = (
    r"\x1b|\xc2\x9b|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xc2\xad|\xcd\x8f"
    r"|\xd8\x9c|\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])|\xe3\x85\xa4|\xef\xbe\xa0|\xf3\xa0"
    r"|[0-9A-Za-z]\xef\xb8|\\u[fF][eE]0[0-9A-Fa-f][0-9A-Za-z]|\x00|\x08"
    r"|\\u00[0-7][0-9A-Fa-f]|\\u20[026]|\\u009[bB]|\\u[fF][eE][fF][fF]|\\u00[aA][dD]|\\u034[fF]|\\u\{"
    r"|\\u061[cC]|\\u11[56]|\\u17[bB]|\\u180|\\u3164|\\u[fF][fF][aA]0|\\u[dD][bB]4|\\U000|\\_"
    r"|[0-9A-Za-z+]\\+/[0-9A-Za-z+]{4}"  # `\\/` in a key, as PHP writes JSON
    r"|\\x[0-7][0-9A-Fa-f]|\\[01][0-7]{2}|%[0-7][0-9A-Fa-f]|%E2%8|%e2%8"
    r"|&(?:#[0-9xX]|[A-Za-z]{2,9};)|\\[eE]\[|\^\[\[|\[[0-9;]{1,12}m"
)
# Any escape in JSON within JSON may disguise a letter. An escape of plain JSON is a disguise only
# right before a word: its hexadecimal digits hide where the word starts.
IN_JSON = DISGUISE + r"|\\\\u[0-9A-Fa-f]{4}|\\u[0-9A-Fa-f]{4}[0-9A-Za-z_]|\\b[!-~]{2}\\+b"
IN_TEXT = DISGUISE + r"|\\u[0-9A-Fa-f]{4}"

_END = rb"[0-?]*+[ -/]*+[@-~]"  # end of an escape sequence
_BRACKET = rb"(?:\[|%5[bB])"
# Each alternative begins with its own byte, so that `re` finds it fast. Every repetition is
# possessive, so that the time is linear for any text.
_MARK = re.compile(
    rb"\x1b(?:\[%(end)s|[\]PX^_][^\x07\x1b]*+(?:\x07|\x1b\\)|[()*+][0-9A-Z]|[78=>@-Z^_])?+"
    rb"|\xc2(?:\x9b%(end)s|\xad)|\xcd\x8f|\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf])"
    rb"|\xd8\x9c|\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])|\xe3\x85\xa4"
    rb"|\xef(?:\xbb\xbf|\xb8[\x80-\x8f]|\xbe\xa0)|\xf3\xa0[\x80-\xbf]{2}|\x00|_\x08|\x08[ -~]?+"
    rb"|\^\[\[%(end)s|\[[0-9;]{1,12}+m"
    rb"|%%(?:1[bB]%(bracket)s%(end)s|[0-9A-Fa-f]{2})"
    rb"|&(?:#(?:27|[xX]1[bB]);%(bracket)s%(end)s"
    rb"|#[0-9]{1,7}+;?+|#[xX][0-9A-Fa-f]{1,6}+;?+|[A-Za-z][A-Za-z0-9]{1,9};)"
    rb"|\\(?:\\*+(?:u001[bB]|x1[bB]|033|[eE])%(bracket)s%(end)s"
    rb"|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|u\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|[0-3][0-7]{2}|[nrtbf\"'/\\eE_])"
    % {b"end": _END, b"bracket": _BRACKET}
)
_SPELLED = re.compile(
    rb"\\[uU]\{?([0-9A-Fa-f]+)\}?|(?:\\x|%)([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})|(&[^;&]+;?)|\\(.)"
)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f", b"e": b"\x1b"}
_LETTERS[b"E"] = b"\x1b"
# NUL, and the overstrike output of `man`: `h\x08h` is bold, `_\x08h` underlined
_UNSEEN = b"\x00\x08_"
_SEQUENCE = b"\x00\xff\x00"  # not valid UTF-8, so no text contains it


def decoded_texts(text: bytes, deadline: float = math.inf) -> dict[bytes, bytes]:
    """Return the decoded text in two forms: terminal sequences removed, or replaced by spaces.

    The keys are the replacements, b"" and b" ". A text without such sequences has only the first
    form. Raise OutOfTimeError after `deadline`, a processor time of this thread in seconds.
    """
    read = bytearray()  # `sub` would take 90 bytes of memory for each mark
    done = 0
    for number, mark in enumerate(_MARK.finditer(text)):
        if not number % ESCAPES_AT_ONCE and time.thread_time() > deadline:
            raise OutOfTimeError
        read += text[done : mark.start()]
        read += _meanings[mark[0]]
        done = mark.end()
    read += text[done:]
    found = bytes(read)
    if _SEQUENCE in found:
        return {between: found.replace(_SEQUENCE, between) for between in (b"", b" ")}
    return {b"": found}


def positions(spelled: bytes, between: bytes, deadline: float = math.inf) -> Positions:
    """Decode a text and map positions to the original. Terminal sequences become `between`.

    Raise OutOfTimeError after `deadline`, as in `decoded_texts`.
    """

    def meaning(mark: re.Match[bytes]) -> bytes:
        meant = _meanings[mark[0]]
        return between if meant is _SEQUENCE else meant

    return Positions(spelled, _MARK.finditer(spelled), meaning, deadline)


class _Meanings(dict[bytes, bytes]):
    """A cache of limited size: escape or invisible character -> decoded bytes."""

    def __missing__(self, mark: bytes) -> bytes:
        meant = _meant(mark)
        if len(self) < _MOST_REMEMBERED:
            self[mark] = meant
        return meant


_MOST_REMEMBERED = 4096
_meanings = _Meanings()


def _meant(mark: bytes) -> bytes:
    match = _SPELLED.fullmatch(mark)
    if match is None:
        return _SEQUENCE if mark[-1] < 0x80 and mark[0] not in _UNSEEN and mark != b"\x1b" else b""
    code, byte, octal, entity, letter = match.groups()
    if code:
        return chr(min(int(code, 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
    if entity:
        return html.unescape(entity.decode()).encode("utf-8", "surrogatepass")
    if letter:
        return _LETTERS.get(letter, letter)
    # One byte, perhaps of a multi-byte character.
    return bytes((int(byte, 16) if byte else int(octal, 8),))
