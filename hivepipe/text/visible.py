"""Convert text to one visible line; control characters are escaped.

Hooks import this module only when there is text to show.
"""

# Invisible characters that Python calls printable: they could hide a word or make different ids
# look alike. (Unicode's default ignorable code points; the others are not printable for Python.)
_UNSEEN = frozenset(
    [
        *map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x3164, 0xFFA0)),
        *map(chr, range(0x180B, 0x180E)),
        *map(chr, range(0xFE00, 0xFE10)),
        *map(chr, range(0xE0100, 0xE01F0)),
    ]
)


def printable(value: object) -> str:
    r"""Return a text on one line with control characters as escapes such as `\x1b` and `\n`.

    None becomes "".
    """
    text = "" if value is None else str(value)
    if text.isprintable() and (text.isascii() or _UNSEEN.isdisjoint(text)):
        return text
    return "".join([_visible(char) for char in text])


def is_harmless(char: str) -> bool:
    """Tell whether a character is visible and not a control character."""
    return char.isprintable() and char not in _UNSEEN


def _visible(char: str) -> str:
    if is_harmless(char):
        return char
    if char.isspace() and ord(char) >= 0xA0 and char not in "\u2028\u2029":
        return " "  # a space of another width, such as a thin or ideographic one
    return char.encode("unicode_escape").decode()
