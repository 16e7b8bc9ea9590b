"""What an address asks for: homes and filters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from hivepipe.errors import HivepipeError
from hivepipe.reading.homes import KnownHome
from hivepipe.times import stored_time

Content = dict[str, Any]
_MOST_DIGITS = 9
_STORED_CHARACTERS = len("2026-11-21T00:00:00.000Z")


class FilterError(HivepipeError):
    """A filter of the address cannot be used."""


@dataclass(frozen=True)
class Asked:
    """The chosen homes, and the filters of the address.

    `team_home`: whose session of a team it is; `reader`: the member who asks, "": this user.
    `later`: called once a value is there that takes seconds; None: it is waited for.
    """

    homes: list[KnownHome]
    filters: dict[str, str] = field(default_factory=dict)
    session: str = ""
    team_home: str = ""
    reader: str = ""
    later: Callable[[], None] | None = None

    def filter(self, name: str) -> str:
        """Return a filter, or ""."""
        return self.filters.get(name, "")

    def time(self, name: str, days: int = 0) -> str:
        """Return a local day or a time, and some days, as a stored time; "": none.

        FilterError: it is neither.
        """
        return day_begins(self.filter(name), days, name)

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number from 1 to `most`; FilterError: it is none."""
        text = self.filter(name)
        if not text:
            return default
        is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if not is_number or not 1 <= int(text) <= most:
            raise FilterError(f"{name} is no number from 1 to {most}: {text[:40]}")
        return int(text)


def day_begins(text: str, days: int = 0, name: str = "since") -> str:
    """Return a local day or a time, and some days, as a stored time; "": none.

    FilterError: it is neither.
    """
    if not text:
        return ""
    try:
        at = (datetime.fromisoformat(text) + timedelta(days)).timestamp()
        stored = stored_time(round(at * 1000) * 1_000_000)
        if len(stored) == _STORED_CHARACTERS:  # a year of five digits sorts before others
            return stored
    except (ValueError, OverflowError, OSError):
        pass
    raise FilterError(f"{name} is no day, such as 2026-11-21: {text[:40]}")


def address(asked: dict[str, str], **changes: object) -> str:
    """Return the query of an address with other filters; None and "" leave one out."""
    wanted = {**asked, **changes}
    given = {name: value for name, value in wanted.items() if value}
    return f"?{urlencode(given, errors='surrogateescape')}"
