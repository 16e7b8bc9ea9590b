"""The type of an option or argument with a fixed set of values."""

from difflib import get_close_matches
from typing import Any

import click


class Choice(click.Choice[str]):
    """click.Choice that suggests the closest value for a mistyped one."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return an argument's name alone; the help lists its values below the options."""
        if isinstance(param, click.Argument):
            return str(param.name).upper()
        return super().get_metavar(param, ctx)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return click's message, with a suggestion if a value is close."""
        message = super().get_invalid_choice_message(value, ctx)
        close = get_close_matches(str(value), self.choices, n=1)
        return f"{message} Did you mean {close[0]!r}?" if close else message
