"""Command `completion`: the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from hivepipe.cli.parameters import Choice
from hivepipe.cli.terminal import say_text

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_HIVEPIPE_COMPLETE"  # click reads this variable in a command of this name


@click.command()
@click.argument("shell", type=Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a shell script that completes commands and options."""
    kind = get_completion_class(shell)
    root = click.get_current_context().find_root().command
    if kind is not None:
        say_text(kind(root, {}, "hivepipe", _VARIABLE).source(), margin="")
