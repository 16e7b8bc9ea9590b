"""Recorded texts on a page: control characters are shown as escapes."""

import re

# Control characters except tab and line feed, marks that change the writing direction, and lone
# surrogates, such as bytes of a path that is not UTF-8, which cannot be encoded.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape_controls(value: object) -> object:
    r"""Return a text with control characters as escapes such as `\x1b`; other values unchanged."""
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value  # printable text contains no control characters
    text = value.replace("\r\n", "\n")
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
