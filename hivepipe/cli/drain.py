"""Command `drain`: apply the spool straight to the database, without Redis."""

import os
import sqlite3
import sys

import click

from hivepipe import direct
from hivepipe.errors import StoreError
from hivepipe.home import locate


@click.command()
def drain() -> None:
    """Apply the events that wait on disk, without Redis; exit with 1 if any could not be."""
    os.umask(0o077)
    home = locate(".").home
    try:
        report = direct.drain(home)
    except sqlite3.Error as error:
        raise StoreError(f"the database of {home} cannot be written: {error}") from error
    click.echo(f"{report.applied} events applied")
    for path, reason in report.failed.items():
        click.echo(f"kept in the spool: {path.name}: {reason}", err=True)
    for path, reason in report.set_aside.items():
        click.echo(f"set aside in {path.parent}/bad: {path.name}: {reason}", err=True)
    sys.exit(1 if report.failed or report.set_aside else 0)
