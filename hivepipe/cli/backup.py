"""Commands `backup` and `restore`: the data of a home in one file."""

import shlex
import time
from pathlib import Path

import click

from hivepipe.cli.here import refuse_missing
from hivepipe.cli.progress import Progress
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import say
from hivepipe.errors import BackupError
from hivepipe.home import locate
from hivepipe.maintenance.backup import back_up
from hivepipe.maintenance.backup import restore as put_back
from hivepipe.stack import kernel
from hivepipe.stack.conversion import TURN_SECS
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.runtime_folder import Stack, make_private
from hivepipe.stack.stack_processes import stack_processes
from hivepipe.text.plurals import counted
from hivepipe.text.sizes import size


@click.command()
@click.argument("file", required=False, metavar="[FILE]", type=click.Path(dir_okay=False))
@json_option
def backup(file: str | None) -> None:
    """Write the database, archives and settings of this home to one file.

    The stack may run. FILE defaults to hivepipe-<time>.tar.gz in the current folder. Jobs that
    wait in a queue are not included.
    """
    home = locate(".").home
    refuse_missing(home)
    target = Path(file or f"hivepipe-{time.strftime('%Y-%m-%d_%H-%M-%S')}.tar.gz").absolute()
    try:
        manifest = back_up(home, target, _Packed().add)
    except OSError as error:
        folder = home if str(error.filename).startswith(f"{home}/.backup-") else target
        raise BackupError(f"{folder} cannot be written: {error.strerror or error}") from error
    found, number = target.stat().st_size, len(manifest["sha256"])
    if not show_json(file=str(target), bytes=found, files=number):
        say(f"{target}: {counted(number, 'file')}, {size(found)}")


class _Packed:
    """Counts the bytes that were packed, and tells their number on a terminal."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._bytes = 0

    def add(self, more: int) -> None:
        self._bytes += more
        self._progress.tell(lambda: f"{size(self._bytes)} packed so far")


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option("--replace", is_flag=True, help="Move the present data of this home aside.")
@click.option("--with-settings", is_flag=True, help="Also restore its config.toml.")
@click.option("--any-size", is_flag=True, help="Accept any unpacked size.")
@json_option
def restore(file: str, replace: bool, with_settings: bool, any_size: bool) -> None:
    """Verify a backup and restore it; the stack must be down.

    The config.toml in the backup is saved beside the home's own and is used only with
    --with-settings.
    """
    place = locate(".")
    make_private(place.home)
    try:
        with locked_folder(place.home, TURN_SECS):  # a hook could start the stack meanwhile
            kernel.refuse_another(place.home)
            if stack_processes(Stack.of(place)):
                raise BackupError("the stack is running: run `hivepipe down` first")
            found = put_back(
                place.home,
                Path(file),
                replace=replace,
                with_settings=with_settings,
                any_size=any_size,
            )
    except OSError as error:
        raise BackupError(f"{place.home} cannot be restored: {error}") from error
    number, before, settings = len(found["sha256"]), found["before"], found["settings"]
    if show_json(home=place.home, files=number, before=before, settings=settings):
        return
    say(f"{place.home}: {counted(number, 'file')} as of {found['created_at']}")
    if before:
        say(f"previous data: {shlex.quote(before)}")
    if settings:
        say(f"settings not restored (--with-settings does): {shlex.quote(settings)}")
