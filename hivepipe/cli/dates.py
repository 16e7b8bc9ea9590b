"""The types of options that take a day, or a day and a time."""

from datetime import datetime
from typing import Any

import click

_LETTERS = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "HH", "%M": "MM"}


class _Date(click.DateTime):
    """click.DateTime whose error names the formats as people write them."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the date, or fail with the formats."""
        try:
            found: datetime = super().convert(value, param, ctx)
        except click.BadParameter:
            formats = " or ".join(map(_as_written, self.formats))
            self.fail(f"{value!r} does not exist or is not written {formats}.", param, ctx)
        return found


def _as_written(format: str) -> str:
    """Return a format of strptime in letters: YYYY-MM-DD."""
    for code, letters in _LETTERS.items():
        format = format.replace(code, letters)
    return format


DAY = _Date(["%Y-%m-%d"])
DAY_OR_TIME = _Date([*DAY.formats, "%Y-%m-%dT%H:%M"])
