"""Tool `search`: the lines of sessions that contain all words of the query."""

import os
import time
from itertools import chain

from hivepipe.mcp_server.answer import Answer, Row, filled
from hivepipe.mcp_server.tool_call import ToolCall
from hivepipe.reading.homes import KnownHome
from hivepipe.reading.search import Line, Question, find

INDEXING_SECS = 5.0  # for all homes together


def answer(call: ToolCall) -> Answer:
    """Return the lines of each home, newest first."""
    question = Question(
        call.text("query"),
        project=call.folder,
        session=call.text("session"),
        role=call.text("role"),
        since=call.day("since"),
        until=call.day("until"),
    )
    question.terms()  # refuse a query without words even if nothing is recorded
    limit = call.number("limit")
    wanted = call.number("skip") + limit + 1
    until = time.monotonic() + INDEXING_SECS

    def found_in(known: KnownHome) -> tuple[list[Row], int, int]:
        if not os.path.isdir(known.home):  # opening the index would create it
            return [], 0, 0
        found = find(known.home, question, wanted, indexing_secs=until - time.monotonic())
        rows = [_row(known, line) for line in found.lines]
        return rows, found.total, found.not_indexed_bytes

    found, problems = call.of_each(found_in)
    facts = filled(
        found=sum(total for _, total, _ in found),
        not_indexed_bytes=sum(left for *_, left in found) or None,
        unreadable=problems,
    )
    return Answer(chain.from_iterable(rows for rows, *_ in found), facts, limit)


def _row(known: KnownHome, line: Line) -> Row:
    hit = line.hit
    return filled(
        session=hit.key.partition("/")[2] or hit.session,
        of=hit.session if "/" in hit.key else "",
        offset=hit.offset if hit.who != "summary" else None,
        at=hit.time,
        who=hit.who,
        agent=hit.agent,
        project=hit.project or known.project,
        text=f"{line.before}{line.match}{line.behind}",
    )
