"""The parameters of a request for a view: homes and filters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from hivepipe.errors import HivepipeError
from hivepipe.reading.homes import KnownHome
from hivepipe.times import in_store_form

Content = dict[str, Any]
_MOST_DIGITS = 9


class FilterError(HivepipeError):
    """A filter in the URL is invalid."""


@dataclass(frozen=True)
class ViewQuery:
    """The chosen homes, and the filters in the URL.

    `here` is the home where the page was started. The prices and redaction rules of `here` apply to
    a team's rows. `team_home` is the home of a team's session. `reader` is the member who asks, or
    "" for this user. `on_ready` is called when a slow value is ready; without `on_ready`, the view
    waits for the value.
    """

    homes: list[KnownHome]
    filters: dict[str, str] = field(default_factory=dict)
    session: str = ""
    team_home: str = ""
    reader: str = ""
    here: str = ""
    on_ready: Callable[[], None] | None = None

    def filter(self, name: str) -> str:
        return self.filters.get(name, "")

    def time(self, name: str, days: int = 0) -> str:
        """Return filter `name` plus `days` as a stored time ("" if unset), or raise FilterError."""
        return day_begins(self.filter(name), days, name)

    def number(self, name: str, default: int, most: int) -> int:
        """Return a filter as a number from 1 to `most`, or raise FilterError."""
        text = self.filter(name)
        if not text:
            return default
        is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if not is_number or not 1 <= int(text) <= most:
            raise FilterError(f"{name} is not a number from 1 to {most}: {text[:40]}")
        return int(text)


def day_begins(text: str, days: int = 0, name: str = "since") -> str:
    """Return a local day or time, plus `days`, in the store's form; "" stays "".

    Raise FilterError if the text is invalid.
    """
    if not text:
        return ""
    try:
        return in_store_form(datetime.fromisoformat(text) + timedelta(days))
    except (ValueError, OverflowError):
        text = f"{name} is not a day such as 2026-11-21: {text[:40]}"
        raise FilterError(text) from None


def address(filters: dict[str, str], **changes: object) -> str:
    """Return a query string with changed filters; None and "" remove a filter."""
    wanted = {**filters, **changes}
    given = {name: value for name, value in wanted.items() if value}
    return f"?{urlencode(given, errors='surrogateescape')}"
