"""Tool `files`: changed files, with the sessions and subagents that changed them."""

from itertools import chain

from hivepipe.mcp_server.answer import Answer, Row, filled, short
from hivepipe.mcp_server.tool_call import ToolCall
from hivepipe.reading.files import Change, changed_files, last_first

_LONGEST = 1000


def answer(call: ToolCall) -> Answer:
    """Return a row for each file and session, the newest change first."""
    part, session, since = call.text("path"), call.text("session"), call.day("since")
    of_homes, problems = call.of_each(
        lambda known: changed_files(
            [known], part=part, session=session, since=since, folder=call.folder
        )
    )
    found = last_first(chain.from_iterable(of_homes))
    facts = filled(found=len(found), unreadable=problems)
    return Answer(map(_row, found), facts, call.number("limit"))


def _row(change: Change) -> Row:
    return filled(
        file=short(change.path, _LONGEST),
        session=change.session,
        title=short(change.title, 200),
        agents=[short(agent, 200) for agent in change.agents[:20]],
        last_at=change.last_at,
        project=short(change.project, _LONGEST),
    )
