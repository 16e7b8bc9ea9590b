"""A command that checks its arguments together while they are parsed, before it does anything."""

from collections.abc import Callable
from typing import Any

import click
from click.core import augment_usage_errors


class CheckedCommand(click.Command):
    """click.Command with a `check`, which raises UsageError if the arguments do not fit together.

    It is called with every argument of the command.
    """

    def __init__(self, *words: Any, check: Callable[..., None], **options: Any) -> None:
        super().__init__(*words, **options)
        self._check = check

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, then check them."""
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # completion sees a line that is not finished
            with augment_usage_errors(ctx):
                self._check(**ctx.params)
        return rest
