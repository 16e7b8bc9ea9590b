"""Output formats of commands: tables, entries, times, JSON."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import click
from rich.box import HEAVY_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from hivepipe.cli.parameters import given, shared_option, together
from hivepipe.cli.rich_terminal import console
from hivepipe.cli.terminal import is_terminal, say, say_json, say_json_list
from hivepipe.text.visible import printable as printable  # re-exported
from hivepipe.times import in_store_form

Entry = dict[str, Any]
Column = str | Callable[[Entry], object]  # a key of the entries, or a function of one

_STORED_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
PADDED = 100  # columns; in a pipe, a longer text moves the rest of its row to the right
MOST_ROWS = 5000  # rows of a listing in a terminal; rich needs a millisecond for each
FOLDED = 20  # columns; longer texts are folded to this width, times are not

utc_option = shared_option("--utc", is_flag=True, help="Show times in UTC instead of local time.")
json_option = shared_option("--json", is_flag=True, help="Print one JSON object.")
output_options = together(json_option, utc_option)
json_lines_option = shared_option("--json", is_flag=True, help="Print JSON lines.")


def limit_option(default: int, help: str, most: int = 10**6) -> Callable[[Any], Any]:
    return click.option(
        "--limit",
        metavar="N",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help=help,
    )


def show_json(**content: Any) -> bool:
    """With --json, print one JSON object with times in UTC; return whether it was printed."""
    if as_json():
        say_json({"schema": 1, **content})
    return as_json()


def as_json() -> bool:
    return bool(given("json"))


def show_table(
    columns: tuple[str, ...], rows: list[tuple[Any, ...]], without: str = "none"
) -> None:
    """Print a table, or the text `without` if it has no rows.

    The first column is never cut, because people copy it. In a terminal that is too narrow, each
    row is a paragraph. In a pipe, each row is one line.
    """
    if not rows:
        say(without)
        return
    texts = [tuple(printable(value) for value in row) for row in rows]
    if not is_terminal():
        for line in _plain_rows([columns, *texts]):
            say(line)
        return
    widths = [_least_width(*column) for column in zip(columns, *texts, strict=True)]
    widths[0] = max(map(cell_len, (columns[0], *(row[0] for row in texts))))  # never folded
    screen = console()
    if sum(widths) + 3 * len(widths) + 1 > screen.width:
        for row in texts:
            screen.print(Text(_paragraph(columns, row, screen.width)))
        return
    table = Table(box=HEAVY_HEAD)
    for number, (column, width) in enumerate(zip(columns, widths, strict=True)):
        table.add_column(column, no_wrap=number == 0, overflow="fold", min_width=width)
    for row in texts:
        table.add_row(*map(Text, row))
    screen.print(table)


def _plain_rows(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield a line for each row, with aligned columns, for `grep`, `awk` and models."""
    widths = [min(max(map(cell_len, column)), PADDED) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in cells).rstrip()


def _least_width(heading: str, first: str, *others: str) -> int:
    """Return the least width of a column with these cells.

    No word of the heading is broken, and no text of up to FOLDED columns.
    """
    word = max((len(word) for word in heading.split()), default=0)
    return max(word, *(min(cell_len(text), FOLDED) for text in (first, *others)))


def _paragraph(columns: tuple[str, ...], row: tuple[str, ...], width: int) -> str:
    """Return a row as a paragraph: its first value, then name and value of each non-empty cell."""
    lines = [row[0]]
    for name, value in zip(columns[1:], row[1:], strict=True):
        cell = f"  {name} {value}".rstrip()
        if not value:
            continue
        if len(lines) > 1 and cell_len(lines[-1]) + cell_len(cell) <= width:
            lines[-1] += cell
        else:
            lines.append(cell)
    return "\n".join(lines)


def show_entries(
    name: str,
    entries: Iterable[Entry],
    columns: Mapping[str, Column],
    *,
    without: str = "none",
    beside: Mapping[str, object] | None = None,
    is_newest_last: bool = False,
) -> bool:
    """Print entries as a table, or with --json as an object: the list under `name`, and `beside`.

    `columns` maps each column title to a value of the entries. In a terminal, a table has at most
    MOST_ROWS rows, the newest, with a note if there are more. All entries are read before anything
    is printed. Returns True if JSON was printed.
    """
    if as_json():
        texts = [json.dumps(entry) for entry in entries]  # they take less memory than entries
        say_json_list({"schema": 1, **(beside or {})}, name, texts)
        return True
    found = [
        tuple(_shown(entry[at] if isinstance(at, str) else at(entry)) for at in columns.values())
        for entry in entries
    ]
    some = found[-MOST_ROWS:] if is_newest_last else found[:MOST_ROWS]
    shown = some if is_terminal() else found
    show_table(tuple(columns), shown, without)
    if len(shown) < len(found):
        say(f"only {len(shown):,} of {len(found):,} rows are shown: a pipe gets all", err=True)
    return False


def show_entry(entry: Entry) -> None:
    """Print an entry as JSON with --json, else each field that is not empty on its own line."""
    if show_json(**entry):
        return
    for name, value in entry.items():
        if value is not None and value != "":
            say(f"{name:<16} {_shown(value)}")


def _shown(value: Any) -> Any:
    """Return a value as it is printed. A stored time becomes local time, or UTC with --utc."""
    is_time = isinstance(value, str) and _STORED_TIME.fullmatch(value)
    return shown_time(value) if is_time else value


def shown_time(text: str | None) -> str:
    """Return a stored time as local time (with --utc as UTC with a Z), or "" for no time."""
    if not text:
        return ""
    try:
        at = datetime.fromisoformat(text)
        utc = given("utc")
        return f"{at:%Y-%m-%d %H:%M:%S}Z" if utc else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):  # a local time after the year 9999
        return printable(text)


def stored(time: datetime | None) -> str:
    """Return a time from the command line (local or UTC) in the stored form, or "" for none.

    Raises UsageError if UTC or the stored form cannot express the time.
    """
    if time is None:
        return ""
    try:
        return in_store_form(time.replace(tzinfo=UTC) if given("utc") else time)
    except (ValueError, OverflowError):
        raise click.UsageError(f"{time.date()} is out of range") from None


def local_day(text: str) -> str:
    """Return the local or UTC day of a stored time, as YYYY-MM-DD."""
    return shown_time(text)[:10]
