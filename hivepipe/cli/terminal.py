"""All output to the terminal. Control characters in printed data are escaped.

A call of `say` prints one line. A newline in its text is data and is escaped, so that a title, path
or message cannot forge a line.
"""

import io
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

from hivepipe.cli.parameters import given, shared_option
from hivepipe.home import real_path, user_folder
from hivepipe.settings import environment
from hivepipe.text.printable_json import is_json, printable_json
from hivepipe.text.visible import printable

MARGIN = "| "
TEXTS_AT_ONCE = 500  # printing each alone takes a quarter longer
_NO_BREAK = "\xa0"  # a space at which `say_prose` does not wrap; `printable` prints it as a space

yes_option = shared_option("--yes", is_flag=True, help="Do not ask.")


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text, each escaped by `printable`, with tabs as spaces."""
    return [printable(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n")]


def unbroken(text: str) -> str:
    """Return a text, such as a path, that `say_prose` does not wrap."""
    return text.replace(" ", _NO_BREAK)


def short(path: str) -> str:
    """Return a path that is never wrapped, shortened if it is below the current folder or ~."""
    here = real_path(".")
    if path.startswith(f"{here}/"):
        return unbroken(os.path.relpath(path, here))
    user = user_folder()
    return unbroken(f"~{path.removeprefix(user)}" if path.startswith(f"{user}/") else path)


def say(text: object = "", *, err: bool = False, bold: bool = False) -> None:
    line = printable(text)
    if bold and is_terminal(err=err) and not is_dumb():
        line = f"\x1b[1m{line}\x1b[0m"
    _print(f"{line}\n", err)


def say_prose(text: str, indent: int = 9, *, err: bool = False) -> None:
    """Print a line, broken at spaces to fit the terminal; all parts but the first are indented.

    The line is not broken within the label (the first `indent` columns), a `command`, an `unbroken`
    text, a path in the arguments, or the path of the current folder or the user's home folder.
    """
    if not is_terminal(err=err):
        say(text, err=err)
        return
    paths = [word for word in sys.argv[1:] if "/" in word]
    words = map(re.escape, (*paths, real_path("."), user_folder() or "/"))
    whole = "|".join([f"^.{{{indent}}}", "`[^`]*`", *words])
    escaped = _NO_BREAK.join(map(printable, text.split(_NO_BREAK)))
    lines = textwrap.wrap(
        re.sub(whole, lambda found: unbroken(found[0]), escaped),
        max(shutil.get_terminal_size().columns, 2 * indent),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines or [""]:
        say(line, err=err)


def say_text(text: str, *, margin: str = MARGIN) -> None:
    """Print a text of several lines, each after a margin that marks it as data."""
    lines = printable_lines(text)
    _print("".join(f"{margin}{line}".rstrip() + "\n" for line in lines), err=False)


def say_field(name: str, text: str, width: int) -> None:
    """Print a text after its name; further lines are indented."""
    first, *others = printable_lines(text)
    say(f"{printable(name):<{width}} {first}")
    for line in others:
        say(f"{'':<{width}} {MARGIN}{line}".rstrip())


def say_json(
    content: Any, *, indent: int | None = None, readable: bool = False, at_once: bool = True
) -> None:
    """Print a document as JSON; with `readable`, letters outside of ASCII are not escaped."""
    text = json.dumps(content, indent=indent, ensure_ascii=not readable)
    _print(f"{printable_json(text)}\n", err=False, at_once=at_once)


def say_json_list(content: Mapping[str, Any], name: str, texts: Sequence[str]) -> None:
    """Print `content` as a JSON object with a last field `name`, a list of these JSON texts."""
    before = json.dumps({**content, name: []}).removesuffix("]}")
    for number in range(0, len(texts), TEXTS_AT_ONCE):
        some = ", ".join(texts[number : number + TEXTS_AT_ONCE])
        _print(printable_json(f"{before}{some}"), err=False, at_once=False)
        before = ", "
    _print(f"{'' if before == ', ' else printable_json(before)}]}}\n", err=False)


def say_archived_line(line: bytes) -> None:
    """Print an archived JSON line, with control characters as JSON escapes.

    A line that is not JSON is printed behind MARGIN, with its control characters escaped.
    """
    text = line.rstrip(b"\n").decode("utf-8", "surrogateescape")
    if not (text.startswith("{") and text.isascii() and text.isprintable()):
        text = printable_json(text) if is_json(text) else f"{MARGIN}{printable(text)}"
    _print(f"{text}\n", err=False, at_once=False)


def say_bytes(line: bytes) -> None:
    """Write bytes unchanged to a pipe or a file, escaped to a terminal."""
    if not is_terminal():
        raw_stream(err=False).buffer.write(line)
        return
    ended = "\n" if line.endswith(b"\n") else ""
    text = printable_lines(line.removesuffix(b"\n").decode("utf-8", "backslashreplace"))[0]
    _print(f"{text}{ended}", err=False, at_once=False)


def flush() -> None:
    sys.stdout.flush()


@contextmanager
def document() -> Iterator[None]:
    """Let the block print a document. A file or a pipe gets it in UTF-8 in any locale.

    The output stops silently when the reader of the pipe, such as `head`, closes it.
    """
    stream = raw_stream(err=False)
    if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        yield
        flush()
    except BrokenPipeError:
        discard_buffered_output()


def discard_buffered_output(*, err: bool = False) -> None:
    """Redirect stdout (`err`: stderr) to /dev/null, so that Python can flush its buffer at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), raw_stream(err).fileno())


def confirm(question: str) -> bool:
    return click.confirm(printable(question))  # noqa: TID251


def confirm_or_end(question: str) -> None:
    """Ask a question unless --yes is given, and end the command unless the answer is yes."""
    if not given("yes"):
        click.confirm(printable(question), abort=True, err=bool(given("json")))  # noqa: TID251


def refuse_question() -> None:
    """Raise UsageError if --json is given without --yes. A question would precede the JSON."""
    if given("json") and not given("yes"):
        raise click.UsageError("with --json no question is asked: add --yes")


def ask(question: str, **options: Any) -> Any:
    """Ask for a text; `options` go to `click.prompt`."""
    return click.prompt(printable(question), **options)  # noqa: TID251


def ask_secret(name: str) -> str:
    """Ask for a secret without echo; if stdin is not a terminal, read a line from stdin."""
    if sys.stdin.isatty():
        return str(ask(name, hide_input=True))
    return sys.stdin.readline().rstrip("\n")


def is_terminal(*, err: bool = False) -> bool:
    """Return True if stdout (`err`: stderr) is a terminal."""
    return raw_stream(err).isatty()


def is_dumb() -> bool:
    """Tell whether the terminal, such as a shell in Emacs, has no control sequences."""
    return environment("TERM") == "dumb"


class _Guarded:
    """A standard stream that escapes the control characters in everything written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with control characters escaped. Raises TypeError for bytes."""
        if not isinstance(text, str):
            raise TypeError("a text stream")
        lines = text.expandtabs().split("\n")  # click indents by tabs
        self.stream.write("\n".join(map(printable, lines)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _GuardedErrors(_Guarded):
    """A guarded stderr. Text that cannot be written is dropped: no stream can report the error."""

    def write(self, text: str) -> int:
        with _dropping_what_fails(err=True):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with _dropping_what_fails(err=True):
            self.stream.flush()


@contextmanager
def _dropping_what_fails(*, err: bool) -> Iterator[None]:
    """Ignore a failed write to stderr (`err`), as on a full disk; raise if stdout failed."""
    try:
        yield
    except OSError:
        if not err:
            raise
        discard_buffered_output(err=True)


def guarded(stream: TextIO) -> TextIO:
    return cast(TextIO, _Guarded(stream))


def open_missing_streams() -> None:
    """Open /dev/null for standard streams that are closed, as by `>&-`.

    Otherwise the next opened file would get the descriptor of stdout, and receive all output.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # `open` returns `number`, because it is the lowest free one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8", opener=os.open))  # noqa: SIM115


def stdin_was_closed() -> bool:
    """Tell whether stdin was closed at the start, and is /dev/null now."""
    return sys.stdin.name == os.devnull


def guard_streams() -> None:
    """Replace stdout and stderr by guarded streams, because click and RQ print to them directly."""
    for name, guard in (("stdout", _Guarded), ("stderr", _GuardedErrors)):
        stream = getattr(sys, name)
        if isinstance(stream, _Guarded):
            continue
        if isinstance(stream, io.TextIOWrapper):  # file names that are not UTF-8 are shown, too
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, guard(stream))


@contextmanager
def lines_of_others() -> Iterator[None]:
    """Route the click output of another program's commands through `say`, without colours.

    Each call of click prints one line. As with `say`, a newline in the text is escaped.
    """

    def line(message: object = "", file: object = None, err: bool = False, **_: object) -> None:
        say("" if message is None else click.unstyle(str(message)), err=err)

    def clear() -> None:
        if is_terminal() and not is_dumb():
            _print("\x1b[2J\x1b[1;1H", err=False)

    before = click.echo, click.secho, click.clear  # noqa: TID251
    click.echo = click.secho = line  # type: ignore[assignment]  # noqa: TID251
    click.clear = clear
    try:
        yield
    finally:
        click.echo, click.secho, click.clear = before  # noqa: TID251


def raw_stream(err: bool) -> TextIO:
    """Return stdout or stderr without `_Guarded`, for texts that are escaped already."""
    stream = sys.stderr if err else sys.stdout
    stream = getattr(stream, "rich_proxied_file", stream)  # the stream below a screen of rich
    return stream.stream if isinstance(stream, _Guarded) else stream


def _print(text: str, err: bool, at_once: bool = True) -> None:
    stream = raw_stream(err)
    with _dropping_what_fails(err=err):
        stream.write(text)
        if at_once:
            stream.flush()
