"""What the forms of a conversation have in common: its head, and the lines of its pieces."""

from collections.abc import Iterable, Iterator

from hivepipe.cli.tables import moment
from hivepipe.reading.conversation import Conversation
from hivepipe.reading.pieces import AGENT, CLAUDE, NOTE, THINKING, USER, Piece
from hivepipe.text.plurals import counted

MOST_FOLDED = 100  # characters of a line that stands for many
MOST_FAILURE_LINES = 20
SAID = (USER, CLAUDE)


def head(found: Conversation, utc: bool) -> list[tuple[str, str]]:
    """Return what is known of the whole, each with its name."""
    meta = found.meta
    times = [moment(str(meta.get(name) or ""), utc) for name in ("started_at", "ended_at")]
    models = meta.get("models")
    known = {
        "session": found.session,
        "agent": " ".join(filter(None, (found.agent, found.agent_type))) if found.agent else "",
        "title": str(meta.get("title") or ""),
        "folder": str(meta.get("cwd") or ""),
        "time": " to ".join(filter(None, times)),
        "model": ", ".join(map(str, models)) if isinstance(models, list) else "",
    }
    return [(name, text) for name, text in known.items() if text]


def turn_of(piece: Piece) -> str:
    """Return whose turn a piece is in: tools are Claude's."""
    if piece.kind in (USER, NOTE, AGENT):
        return piece.kind
    return CLAUDE


def turns(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Yield each piece, and whether another one's turn begins with it."""
    before: tuple[str, int] | None = None
    for piece in pieces:
        now = (turn_of(piece), piece.depth)
        yield piece, now != before
        before = None if piece.kind == AGENT else now


def folded(piece: Piece) -> str:
    """Return one line that stands for a piece."""
    lines = [line for line in piece.text.splitlines() if line.strip()]
    first = " ".join(lines[0].split()) if lines else "(nothing)"
    shown = f"{first[:MOST_FOLDED]}…" if len(first) > MOST_FOLDED else first
    more = f" ({counted(len(lines), 'line')})" if len(lines) > 1 else ""
    of = "thinking" if piece.kind == THINKING else " ".join(piece.of.split())
    said = f"{of}: {shown}" if of else shown
    return f"{said}{more}"


def failure(piece: Piece) -> list[str]:
    """Return the lines of a failure, not too many."""
    of = [f"{piece.of}:"] if piece.of else []
    lines = [*of, *(piece.text.splitlines() or ["(nothing)"])]
    more = len(lines) - MOST_FAILURE_LINES
    return [*lines[:MOST_FAILURE_LINES], *([f"[{counted(more, 'more line')}]"] if more > 0 else [])]
