"""Tool `session`: a complete conversation, page by page."""

from collections.abc import Iterable, Iterator

from hivepipe.mcp_server.answer import MOST_CHARS, Answer, Row, filled, short
from hivepipe.mcp_server.tool_call import ToolCall
from hivepipe.reading.conversation import conversation
from hivepipe.reading.conversation_reader import Conversation
from hivepipe.reading.homes import settings_of
from hivepipe.reading.pieces import Piece
from hivepipe.reading.session_lookup import home_with

PART_CHARS = 6000  # a longer text is continued in the next row
_SHORT = 500


def answer(call: ToolCall) -> Answer:
    """Return the messages and calls, or raise ArchiveError if the session is not archived."""
    start = call.text("session")
    known = home_with(call.homes, start)
    with settings_of(known.home):
        found = conversation(known.home, start)
    return Answer(_rows(found.pieces), _facts(found), MOST_CHARS)


def _facts(found: Conversation) -> Row:
    names = {"title": "title", "folder": "cwd", "began": "started_at", "ended": "ended_at"}
    texts = {name: short(found.meta.get(key), _SHORT) for name, key in names.items()}
    agent = filled(agent=found.agent, agent_type=found.agent_type)
    return filled(session=found.session, **agent, **texts, models=found.meta.get("models"))


def _rows(pieces: Iterable[Piece]) -> Iterator[Row]:
    for piece in pieces:
        whole = "\n".join(filter(None, (piece.text, *piece.diff)))
        parts = [whole[at : at + PART_CHARS] for at in range(0, len(whole), PART_CHARS)] or [""]
        yield {**_head(piece), "text": parts[0]}
        for part in parts[1:]:
            yield {"continued": True, "text": part}


def _head(piece: Piece) -> Row:
    return filled(
        at=piece.at,
        kind=piece.kind,
        depth=piece.depth or None,
        of=short(piece.of, _SHORT),
        agent=piece.id if piece.kind == "agent" else "",
    )
