"""A conversation as text: turns, messages after a margin, results of tools folded."""

from collections.abc import Iterable

from rich.console import Console  # noqa: TID251  a type
from rich.text import Text

from hivepipe.cli.rich_terminal import console
from hivepipe.cli.tables import shown_time
from hivepipe.cli.terminal import MARGIN, is_terminal, printable_lines
from hivepipe.cli.transcript_words import (
    MESSAGES,
    failure,
    folded_line,
    head,
    turn_of,
    turn_title,
    turns,
)
from hivepipe.reading.conversation_reader import Conversation
from hivepipe.reading.pieces import AGENT, CALL, FAILURE, Piece
from hivepipe.text.visible import printable

_STYLES = {"user": "bold cyan", "claude": "bold", "note": "dim", "agent": "bold magenta"}
_INDENT = "    "
NARROWEST = 20


def show_text(found: Conversation) -> None:
    """Print a conversation as text, head and turns, piece by piece as its archive is read."""
    screen = console()
    width = screen.width if is_terminal() else None

    def line(before: str, text: str, style: str = "", indent: str = "") -> None:
        for part in _wrapped(screen, Text(text, style), width and width - len(indent + before)):
            screen.print(Text.assemble(indent, (before, "dim"), part), soft_wrap=True)

    for name, value in head(found):
        line(f"{name:<8} ", printable(value))
    for piece, begins in turns(found.pieces):
        indent = _INDENT * piece.depth
        if begins:
            line("", "")
            at, style = f"{shown_time(piece.at)} ".lstrip(), _STYLES[turn_of(piece)]
            line(at, printable(turn_title(piece)), style, indent)
        mark, marked = ("» ", "bold yellow") if piece.is_hit else ("", "")
        for before, text, style in _lines(piece):
            line(mark + before, text, style or marked, indent)
            mark = ""


def _wrapped(screen: Console, text: Text, width: int | None) -> Iterable[Text]:
    """Return the lines of a text wrapped to `width` columns, or one line if `width` is None."""
    return text.wrap(screen, max(width, NARROWEST)) or [text] if width is not None else [text]


def _lines(piece: Piece) -> list[tuple[str, str, str]]:
    """Return (margin, text, style) for each line of a piece of the conversation."""
    if piece.kind == AGENT:
        return []
    if piece.kind in MESSAGES:
        return [(MARGIN, text, "") for text in printable_lines(piece.text)]
    if piece.kind == FAILURE:
        lines = [text for each in failure(piece) for text in printable_lines(each)]
        return [(f"{MARGIN}  ! ", text, "red") for text in lines]
    if piece.kind == CALL:
        changes = [text for each in piece.diff for text in printable_lines(each)]
        return [
            (f"{MARGIN}* ", printable(piece.text), "bold"),
            *((f"{MARGIN}    ", text, _of_change(text)) for text in changes),
        ]
    return [(f"{MARGIN}  ", printable(folded_line(piece)), "dim")]


def _of_change(text: str) -> str:
    return {"+": "green", "-": "red"}.get(text[:1], "dim")
