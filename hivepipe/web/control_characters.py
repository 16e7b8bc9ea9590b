"""Recorded texts on a page: characters that steer or hide text are shown as escapes."""

import re

# Control characters except tab and line feed; marks that change the direction of writing; lone
# surrogates, such as bytes of a path that is not UTF-8, which no page can hold.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def seen(value: object) -> object:
    r"""Return a text with its steering characters as escapes, such as `\x1b`; others unchanged."""
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value  # what steers is not printable
    text = value.replace("\r\n", "\n")
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
