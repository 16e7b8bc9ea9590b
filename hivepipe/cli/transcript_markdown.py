"""A conversation as Markdown: every text is quoted or fenced, and HTML is escaped."""

import re

from hivepipe.cli.tables import shown_time
from hivepipe.cli.terminal import printable_lines, say
from hivepipe.cli.transcript_words import MESSAGES, failure, folded_line, head, turn_title, turns
from hivepipe.reading.conversation_reader import Conversation
from hivepipe.reading.pieces import AGENT, CALL, FAILURE, Piece

# Only at the beginning of a line, because a fence in a list item may end with the list.
_FENCE = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_MARKS = re.compile(r"([\\`*_\[\]<>#|~])")


def show_markdown(found: Conversation) -> None:
    """Print a conversation as Markdown: facts about it, then its turns as they are read."""
    for name, text in head(found):
        say(f"- **{name}** {_escaped(text)}")
    for piece, begins in turns(found.pieces):
        quote = "> " * piece.depth
        if begins:
            at = shown_time(piece.at)
            _line("", quote)
            _line(f"### {_escaped(turn_title(piece))}" + (f" ({at})" if at else ""), quote)
        if piece.is_hit:
            _line("", quote)
            _line("**The hit:**", quote)
        _show(piece, quote)


def _show(piece: Piece, quote: str) -> None:
    if piece.kind == AGENT:
        return
    _line("", quote)
    if piece.kind in MESSAGES:
        for line in _quoted(piece.text):
            _line(f"> {line}", quote)
    elif piece.kind == CALL:
        _line(f"- **{_escaped(piece.text)}**", quote)
        if piece.diff:
            _fenced(piece.diff, quote, "diff")
    elif piece.kind == FAILURE:
        _line("- failed:", quote)
        _fenced(failure(piece), quote)
    else:
        _line(f"  - {_escaped(folded_line(piece))}", quote)


def _quoted(text: str) -> list[str]:
    """Return the lines of a Markdown text; `<` outside of code is escaped."""
    lines, fence = [], ""
    for line in text.splitlines():
        match = _FENCE.fullmatch(line.rstrip())
        opener = (match[1] or match[2]) if match else ""
        if fence:
            lines.append(line)
            if opener and opener[0] == fence[0] and len(opener) >= len(fence):
                fence = "" if line.strip() == opener else fence
        else:
            fence = opener
            lines.append(line if opener else _harmless(line))
    return [*lines, fence] if fence else lines


def _harmless(line: str) -> str:
    """Escape HTML and headings in a line, because a heading in the output begins a turn."""
    shown = line.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"^( {0,3})#", r"\1\#", shown)


def _fenced(lines: tuple[str, ...] | list[str], quote: str, language: str = "") -> None:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(longest + 1, 3)
    _line("", quote)
    _line(f"  {fence}{language}", quote)
    for line in lines:
        _line(f"  {line}", quote)
    _line(f"  {fence}", quote)


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text.replace("&", "&amp;"))


def _line(text: str, quote: str) -> None:
    for line in printable_lines(text):
        say(f"{quote}{line}".rstrip())
