"""Command `logs`: the log lines of the stack's processes."""

import time
from collections.abc import Iterable
from pathlib import Path

import click

from hivepipe.cli.choice import Choice
from hivepipe.cli.tables import json_lines_option, show_json
from hivepipe.cli.terminal import say
from hivepipe.files.regular_file import regular
from hivepipe.home import locate
from hivepipe.stack.processes import PROCESSES

FOLLOW_SECS = 0.2
_MOST_BYTES = 16 << 20
PROGRAMS = tuple(entry.name for entry in PROCESSES)
NAMES = ("supervisord", *PROGRAMS)


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Follow new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Number of lines of each process.",
)
@click.argument("process", type=Choice(NAMES), required=False)
@json_lines_option
def logs(follow: bool, lines: int, process: str | None, as_json: bool) -> None:
    """Show the last log lines of each process, or of one.

    For what a session did, see `hivepipe session show`.
    """
    show = show_lines_as_json if as_json else show_lines
    tail = Tail(locate(".").home, [process] if process else NAMES)
    show(tail.last_lines(lines))
    try:
        while follow:
            time.sleep(FOLLOW_SECS)
            show(tail.new_lines())
    except KeyboardInterrupt:
        return


class Tail:
    """Reads the process logs of a home, each from its last offset."""

    def __init__(self, home: str, names: Iterable[str] = NAMES, from_end: bool = False) -> None:
        """Start at the beginning of each log, or with `from_end` after its present lines."""
        self._seen = {Path(home, "logs", f"{name}.log"): 0 for name in names}
        if from_end:
            self._seen = {log: _size(log) for log in self._seen}

    def last_lines(self, count: int) -> list[tuple[str, str]]:
        """Return the last lines of each log as (process, line)."""
        lines = []
        for log in self._seen:
            before = self._read(log.with_name(f"{log.name}.1"), 0)
            now = self._read(log, 0)
            self._seen[log] = len(now)
            read = (before + now).decode("utf-8", "replace").splitlines()
            lines += [(log.stem, line) for line in read[max(len(read) - count, 0) :]]
        return lines

    def new_lines(self) -> list[tuple[str, str]]:
        """Return the complete lines that were added since the last call as (process, line)."""
        lines = []
        for log, seen in self._seen.items():
            before = b""
            if _size(log) < seen:  # rotated
                before, seen = self._read(log.with_name(f"{log.name}.1"), seen), 0
            new, newline, _ = self._read(log, seen).rpartition(b"\n")
            self._seen[log] = seen + len(new) + len(newline)
            read = (before + new).decode("utf-8", "replace").splitlines()
            lines += [(log.stem, line) for line in read]
        return lines

    def _read(self, log: Path, start: int) -> bytes:
        try:
            with open(log, "rb", opener=regular) as stream:
                stream.seek(start)
                return stream.read(_MOST_BYTES)  # supervisord begins a new file at 1 MB
        except FileNotFoundError:
            return b""


def show_lines(lines: list[tuple[str, str]]) -> None:
    """Print each line after the name of its process."""
    for name, line in lines:
        say(f"{name:<11} {line}")


def show_lines_as_json(lines: list[tuple[str, str]]) -> None:
    """Print an object for each line."""
    for name, line in lines:
        show_json(process=name, line=line)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0
