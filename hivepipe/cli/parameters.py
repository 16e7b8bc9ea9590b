"""Declaration of options and arguments: shared options, types, and checks across arguments."""

from collections.abc import Callable
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypeVar

import click
from click.core import augment_usage_errors

_Command = TypeVar("_Command", bound=Callable[..., Any])
_LETTERS = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "HH", "%M": "MM"}


def shared_option(*names: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """Return an option that several commands share. A command reads its value with `given`."""
    return click.option(*names, expose_value=False, callback=_keep, **attributes)


def together(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return one decorator for several options, given in the order in which `--help` lists them."""

    def decorated(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def given(name: str) -> Any:
    """Return the value of a shared option, or None if the current command lacks the option."""
    context = click.get_current_context(silent=True)
    return context.meta.get(__name__, {}).get(name) if context else None


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    context.meta.setdefault(__name__, {})[option.name] = value


class CheckedCommand(click.Command):
    """A command that first checks its arguments: `check` gets all of them and raises UsageError."""

    def __init__(self, *words: Any, check: Callable[..., None], **options: Any) -> None:
        super().__init__(*words, **options)
        self._check = check

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # completion parses an unfinished command line
            with augment_usage_errors(ctx):
                self._check(**ctx.params)
        return rest


class Choice(click.Choice[str]):
    """A click.Choice that suggests the closest value for a mistyped value."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return only the argument's name, because the help lists the values below the options."""
        if isinstance(param, click.Argument):
            return str(param.name).upper()
        return super().get_metavar(param, ctx)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        message = super().get_invalid_choice_message(value, ctx)
        close = get_close_matches(str(value), self.choices, n=1)
        return f"{message} Did you mean {close[0]!r}?" if close else message


class _Date(click.DateTime):
    """click.DateTime whose error shows the formats in letters, such as YYYY-MM-DD."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            found: datetime = super().convert(value, param, ctx)
        except click.BadParameter:
            formats = " or ".join(map(_as_written, self.formats))
            self.fail(f"{value!r} does not exist or is not written {formats}.", param, ctx)
        return found


def _as_written(format: str) -> str:
    """Return a format of strptime as a person writes it, such as YYYY-MM-DD."""
    for code, letters in _LETTERS.items():
        format = format.replace(code, letters)
    return format


DAY = _Date(["%Y-%m-%d"])
DAY_OR_TIME = _Date([*DAY.formats, "%Y-%m-%dT%H:%M"])
