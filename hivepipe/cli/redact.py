"""Command `redact`: print a text without its secrets, with an optional report."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import click

from hivepipe.cli.terminal import discard_buffered_output, flush, say, say_bytes, stdin_was_closed
from hivepipe.errors import HivepipeError, os_error_as
from hivepipe.home import locate
from hivepipe.redact.configured import load_redactor
from hivepipe.redact.redactor import UNREDACTABLE, Redacted
from hivepipe.text.plurals import counted

LINES_SHOWN = 20


@dataclass
class Report:
    """The number and the line numbers of redacted secrets, by rule; contains no secret itself."""

    lines: int = 0
    changed: int = 0
    secrets: Counter[str] = field(default_factory=Counter)
    lines_with: dict[str, list[int]] = field(default_factory=dict)

    def add(self, rules: tuple[str, ...]) -> None:
        """Count one line, and the rules that matched in it."""
        self.lines += 1
        self.changed += bool(rules)
        self.secrets.update(rules)
        for rule in set(rules):
            seen = self.lines_with.setdefault(rule, [])
            if len(seen) <= LINES_SHOWN:
                seen.append(self.lines)

    def show(self) -> None:
        say(f"{self.changed} of {counted(self.lines, 'line')} changed", err=True)
        width = max(map(len, self.secrets), default=0)
        for rule, number in self.secrets.most_common():
            shown = self.lines_with[rule]
            more = " ..." if len(shown) > LINES_SHOWN else ""
            lines = ", ".join(map(str, shown[:LINES_SHOWN]))
            say(f"{rule:<{width}} {number:>6}  line {lines}{more}", err=True)


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--report", "with_report", is_flag=True, help="Print the matches of each rule to stderr."
)
def redact(file: str, with_report: bool) -> None:
    """Print a transcript, or any text, without its secrets; FILE may be `-` for stdin."""
    redactor = load_redactor(locate(".").home).of_session()
    report = Report()
    with _opened(file) as source:
        try:
            for line, rules in _read(redactor.redact_stream(source), file):
                say_bytes(line)
                report.add(rules)
            flush()
        except BrokenPipeError:  # `| head` has seen enough
            discard_buffered_output()
            return
    if with_report:
        report.show()
    elif report.secrets[UNREDACTABLE]:
        say(
            f"{counted(report.secrets[UNREDACTABLE], 'text')} not printed: redaction failed",
            err=True,
        )


def _read(lines: Iterable[Redacted], file: str) -> Iterator[Redacted]:
    """Yield `lines`. Raises HivepipeError if the file cannot be read.

    So an OSError in the caller can only come from stdout.
    """
    with os_error_as(HivepipeError, file):
        yield from lines


def _opened(file: str) -> BinaryIO:
    if file == "-":
        if stdin_was_closed():
            raise HivepipeError("stdin is closed")
        return sys.stdin.buffer
    with os_error_as(HivepipeError, file):
        return open(file, "rb", buffering=1 << 20)
