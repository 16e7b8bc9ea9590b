"""Command `home`; scripts call it often, so this module imports little."""

import os

import click

from hivepipe.cli.terminal import say_bytes
from hivepipe.home import locate


@click.command()
def home() -> None:
    """Print the folder of this project's data."""
    say_bytes(os.fsencode(f"{locate('.').home}\n"))
