"""Functions for the text, Markdown and HTML forms of a conversation: head, turns, folded lines."""

from collections.abc import Iterable, Iterator

from hivepipe.cli.tables import shown_time
from hivepipe.reading.conversation_reader import Conversation
from hivepipe.reading.pieces import AGENT, CLAUDE, NOTE, THINKING, USER, Piece
from hivepipe.text.plurals import counted

MOST_FOLDED = 100  # characters of the line that replaces a folded piece
MOST_FAILURE_LINES = 20
MESSAGES = (USER, CLAUDE)


def head(found: Conversation) -> list[tuple[str, str]]:
    """Return (name, value) for each known fact about the conversation."""
    meta = found.meta
    times = [shown_time(str(meta.get(name) or "")) for name in ("started_at", "ended_at")]
    models = meta.get("models")
    known = {
        "session": found.session,
        "agent": " ".join(filter(None, (found.agent, found.agent_type))) if found.agent else "",
        "of": str(meta.get("of") or ""),
        "title": str(meta.get("title") or ""),
        "folder": str(meta.get("cwd") or ""),
        "time": " to ".join(filter(None, times)),
        "model": ", ".join(map(str, models)) if isinstance(models, list) else "",
    }
    return [(name, text) for name, text in known.items() if text]


def turn_of(piece: Piece) -> str:
    """Return the speaker of a piece. Tool calls and their results belong to Claude's turns."""
    if piece.kind in (USER, NOTE, AGENT):
        return piece.kind
    return CLAUDE


def turn_title(piece: Piece) -> str:
    """Return the heading of the turn that begins with this piece."""
    return f"agent {piece.text} {piece.id}" if piece.kind == AGENT else turn_of(piece)


def turns(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Yield (piece, whether a new turn begins with this piece)."""
    before: tuple[str, int] | None = None
    for piece in pieces:
        now = (turn_of(piece), piece.depth)
        yield piece, now != before
        before = None if piece.kind == AGENT else now


def folded_line(piece: Piece) -> str:
    """Return a piece in its folded form, which is one line."""
    lines = [line for line in piece.text.splitlines() if line.strip()]
    first = " ".join(lines[0].split()) if lines else "(nothing)"
    shown = f"{first[:MOST_FOLDED]}…" if len(first) > MOST_FOLDED else first
    more = f" ({counted(len(lines), 'line')})" if len(lines) > 1 else ""
    of = "thinking" if piece.kind == THINKING else " ".join(piece.of.split())
    text = f"{of}: {shown}" if of else shown
    return f"{text}{more}"


def failure(piece: Piece) -> list[str]:
    """Return up to MOST_FAILURE_LINES lines of a failure, then the number of omitted lines."""
    of = [f"{piece.of}:"] if piece.of else []
    lines = [*of, *(piece.text.splitlines() or ["(nothing)"])]
    more = len(lines) - MOST_FAILURE_LINES
    return [*lines[:MOST_FAILURE_LINES], *([f"[{counted(more, 'more line')}]"] if more > 0 else [])]
