"""The templates of pages, with their filters and functions."""

import re
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hivepipe.text.sizes import size
from hivepipe.times import now, ns_of, span
from hivepipe.web.fragment_cache import FragmentCache
from hivepipe.web.view_query import address

# Control characters except tab and line feed, marks that change the writing direction, and lone
# surrogates, such as bytes of a path that is not UTF-8, which cannot be encoded.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def templates(*folders: Path) -> Environment:
    """Return the templates in these folders; earlier folders take precedence."""
    pages = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(local=local_time, clock=time_of_day, left=time_left, size=size, span=span)
    pages.globals.update(address=address, once=FragmentCache())
    return pages


def escape_controls(value: object) -> object:
    r"""Return a text with control characters as escapes such as `\x1b`; other values unchanged."""
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value  # printable text contains no control characters
    text = value.replace("\r\n", "\n")
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def local_time(text: str | None) -> str:
    """Return a time of the store as local time to the second, or unchanged if it is invalid."""
    return _written(text, "%Y-%m-%d %H:%M:%S")


def time_of_day(text: str | None, with_day: bool = False) -> str:
    """Return the local time of day of a time of the store; return an invalid time unchanged.

    `with_day` adds month and day, and leaves out the seconds.
    """
    return _written(text, "%m-%d %H:%M" if with_day else "%H:%M:%S")


def time_left(text: str) -> str:
    """Return the time until a time of the store: minutes, seconds, or "cold" if it is past."""
    secs = (ns_of(text) - now()[1]) / 10**9
    return (
        f"{secs / 60:.0f} min left" if secs >= 60 else f"{secs:.0f} s left" if secs > 0 else "cold"
    )


def _written(text: str | None, form: str) -> str:
    try:
        return f"{datetime.fromisoformat(text or '').astimezone():{form}}"
    except (ValueError, OverflowError):
        return text or ""
