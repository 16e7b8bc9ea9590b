"""Tool `timeline`: the conversation around a search hit, or the newest events of a session."""

from typing import Any

from hivepipe.mcp_server.answer import MOST_CHARS as MOST_OF_PAGE
from hivepipe.mcp_server.answer import Answer, Row, filled, line_of, short
from hivepipe.mcp_server.tool_call import ToolCall
from hivepipe.reading.conversation import conversation
from hivepipe.reading.homes import settings_of
from hivepipe.reading.pieces import Piece
from hivepipe.reading.session_events import Event
from hivepipe.reading.session_lookup import home_with, session_in
from hivepipe.reading.time_line import TimeLine, time_line

MOST_CHARS = 500  # characters of one text
MOST_FILES = 50
_FACTS = ("project", "client", "model", "created_at", "last_active_at", "end_reason", "task_id")
_COUNTS = ("prompts", "calls", "failed", "agents")


def answer(call: ToolCall) -> Answer:
    """Return the messages and calls around `offset`, oldest first.

    Without an offset, return the session's events, newest first.
    """
    start, limit = call.text("session"), call.number("limit")
    known = home_with(call.homes, start)
    home = known.home
    if call.number("offset") >= 0:
        with settings_of(known.home):
            found = conversation(home, start, call.number("offset"))
        facts = filled(session=found.session, agent=found.agent, agent_type=found.agent_type)
        return Answer(_with_hit([*map(_piece, found.pieces)], limit), facts, limit)
    with known.store() as store:
        full_id = session_in(home, store, start)
        line = time_line(home, store, full_id, call.number("skip") + limit + 1)
    return Answer(map(_event, reversed(line.events)), _facts(full_id, line), limit)


def _with_hit(rows: list[Row], limit: int) -> list[Row]:
    """Leave out as many of the first rows as needed for the first page to have the hit.

    At most `limit` / 2 rows stay before the hit. These rows and the hit fill at most half of the
    page, unless the hit alone is longer.
    """
    hit = next(place for place, row in enumerate(rows) if row.get("is_hit"))
    start = max(hit - limit // 2, 0)
    sizes = [len(line_of(row)) for row in rows[: hit + 1]]
    while start < hit and sum(sizes[start:]) > MOST_OF_PAGE // 2:
        start += 1
    return rows[start:]


def _piece(piece: Piece) -> Row:
    return filled(
        offset=piece.offset,
        at=piece.at,
        kind=piece.kind,
        text=short(piece.text, MOST_CHARS),
        diff=short("\n".join(piece.diff), MOST_CHARS),
        of=short(piece.of, MOST_CHARS),
        is_hit=piece.is_hit or None,
    )


def _event(event: Event) -> Row:
    texts = {name: short(value, MOST_CHARS) for name, value in event._asdict().items()}
    return filled(**texts)


def _facts(session: str, line: TimeLine) -> Row:
    known = line.session or {}
    summary = line.summary or {}
    texts = {name: short(known.get(name), MOST_CHARS) for name in _FACTS}
    counts: dict[str, Any] = {name: known.get(name) for name in _COUNTS}
    return filled(
        session=session,
        title=short(known.get("objective"), MOST_CHARS),
        state=known.get("condition", "deleted"),
        **texts,
        **counts,
        cost=line.cost._asdict(),
        files=[short(path, MOST_CHARS) for path in line.files[:MOST_FILES]],
        files_left_out=max(len(line.files) - MOST_FILES, 0) or None,
        summary=short(summary.get("summary"), 4 * MOST_CHARS),
    )
