"""Options that many commands share; they are read where they count, not passed on."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def shared_option(*names: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """Return an option that is no parameter of the command's function: `given` has its value."""
    return click.option(*names, expose_value=False, callback=_keep, **attributes)


def together(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return one decorator for several options, in the order of `--help`."""

    def decorated(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def given(name: str) -> Any:
    """Return the value of a shared option, or None if the present command does not have it."""
    context = click.get_current_context(silent=True)
    return context.meta.get(__name__, {}).get(name) if context else None


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    context.meta.setdefault(__name__, {})[option.name] = value
