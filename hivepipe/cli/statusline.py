"""Command `statusline`: the line that Claude Code shows below its prompt."""

import sys

import click

from hivepipe.cli.terminal import say
from hivepipe.hook.status_line import line


@click.command()
def statusline() -> None:
    """Print costs, context, prompt cache, waiting sessions and alerts on one line.

    Claude Code runs it after `hivepipe init --statusline` and passes JSON about its session on
    stdin.
    """
    data = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    text = line(data).removesuffix("\n")
    say(text or "nothing is recorded here yet")
