"""The one way out to the terminal: what is printed has nothing in it that steers one.

A call of `say` prints one line: a newline in its text is data, and is shown as such. So nobody's
title, path or message can begin a line of its own.
"""

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

from hivepipe.cli.plain import printable_json, printable_lines
from hivepipe.text.visible import printable

MARGIN = "| "


def say(text: object = "", *, err: bool = False, bold: bool = False) -> None:
    """Print one line."""
    line = printable(text)
    if bold and is_terminal(err=err):
        line = f"\x1b[1m{line}\x1b[0m"
    _print(f"{line}\n", err)


def say_text(text: str, *, margin: str = MARGIN, err: bool = False) -> None:
    """Print a text of several lines, each behind a margin: none of them looks like one of ours."""
    _print("".join(f"{margin}{line}".rstrip() + "\n" for line in printable_lines(text)), err)


def say_field(name: str, text: str, width: int) -> None:
    """Print a text behind its name; further lines stand below the first."""
    first, *others = printable_lines(text)
    say(f"{printable(name):<{width}} {first}")
    for line in others:
        say(f"{'':<{width}} {MARGIN}{line}".rstrip())


def say_json(
    content: Any, *, indent: int | None = None, readable: bool = False, at_once: bool = True
) -> None:
    """Print a document as JSON; `readable` leaves letters of all scripts as they are."""
    text = json.dumps(content, indent=indent, ensure_ascii=not readable)
    _print(f"{printable_json(text)}\n", err=False, at_once=at_once)


def say_kept(line: bytes) -> None:
    """Print a line of a file of JSON as it was kept; only its spelling may be another.

    A line that is no JSON comes behind the margin.
    """
    text = line.rstrip(b"\n").decode("utf-8", "surrogateescape")
    if not (text.startswith("{") and text.isascii() and text.isprintable()):
        text = printable_json(text) if _is_json(text) else f"{MARGIN}{printable(text)}"
    _print(f"{text}\n", err=False, at_once=False)


def say_bytes(line: bytes) -> None:
    """Hand bytes on as they are to a pipe or a file; to a terminal as `say` does."""
    if not is_terminal():
        raw_stream(err=False).buffer.write(line)
        return
    ended = "\n" if line.endswith(b"\n") else ""
    text = printable_lines(line.removesuffix(b"\n").decode("utf-8", "backslashreplace"))[0]
    _print(f"{text}{ended}", err=False, at_once=False)


def flush() -> None:
    """Write out what waits in stdout."""
    sys.stdout.flush()


@contextmanager
def until_enough() -> Iterator[None]:
    """Print much; when the reader, such as `head`, has seen enough, stop without a word."""
    try:
        yield
        flush()
    except BrokenPipeError:
        drop_what_waits()


def drop_what_waits() -> None:
    """Let what cannot be written any more go nowhere, or Python tries again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def confirm(question: str) -> bool:
    """Ask a question that is answered by yes or no."""
    return click.confirm(printable(question))  # noqa: TID251


def confirm_or_end(question: str, *, err: bool = False) -> None:
    """Ask a question, and end the command unless the answer is yes."""
    click.confirm(printable(question), abort=True, err=err)  # noqa: TID251


def ask(question: str, **options: Any) -> Any:
    """Ask for a text; `options` as click has them."""
    return click.prompt(printable(question), **options)  # noqa: TID251


def is_terminal(*, err: bool = False) -> bool:
    """Does a person read this?"""
    return raw_stream(err).isatty()


class _Guarded:
    """A standard stream behind which nothing steers the terminal, whoever writes to it."""

    def __init__(self, stream: TextIO) -> None:
        """`stream` is what was there before."""
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, visible; bytes are refused as by every text stream."""
        if not isinstance(text, str):
            raise TypeError("a text stream")
        self.stream.write("\n".join(map(printable, text.split("\n"))))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guarded(stream: TextIO) -> TextIO:
    """Return a stream behind the guard."""
    return cast(TextIO, _Guarded(stream))


def guard_streams() -> None:
    """Put the guard before stdout and stderr: click's own messages, warnings, tracebacks, RQ's."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, _Guarded):
            continue
        if isinstance(stream, io.TextIOWrapper):  # a name of bytes that are no text is shown too
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, _Guarded(stream))


@contextmanager
def lines_of_others() -> Iterator[None]:
    """Let what another program's commands print through click come out by `say`, without colours.

    Each of their calls prints one line, so a newline within it is data here as well.
    """

    def line(message: object = "", file: object = None, err: bool = False, **_: object) -> None:
        say("" if message is None else click.unstyle(str(message)), err=err)

    def clear() -> None:
        if is_terminal():
            _print("\x1b[2J\x1b[1;1H", err=False)

    before = click.echo, click.secho, click.clear  # noqa: TID251
    click.echo = click.secho = line  # type: ignore[assignment]  # noqa: TID251
    click.clear = clear
    try:
        yield
    finally:
        click.echo, click.secho, click.clear = before  # noqa: TID251


def raw_stream(err: bool) -> TextIO:
    """Return stdout or stderr without the guard: for what is made visible already."""
    stream = sys.stderr if err else sys.stdout
    stream = getattr(stream, "rich_proxied_file", stream)  # below a screen of rich's
    return stream.stream if isinstance(stream, _Guarded) else stream


def _print(text: str, err: bool, at_once: bool = True) -> None:
    stream = raw_stream(err)
    stream.write(text)
    if at_once:
        stream.flush()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
