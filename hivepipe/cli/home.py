"""Command `home`; scripts call it often, so it imports nothing else."""

import click

from hivepipe.cli.terminal import say
from hivepipe.home import locate


@click.command()
def home() -> None:
    """Print the folder of this project's data."""
    say(locate(".").home)
