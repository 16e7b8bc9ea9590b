"""Tool `files`: changed files, with the sessions and subagents that changed them."""

from itertools import chain

from hivepipe.mcp_server.answer import Answer, Row, filled, short
from hivepipe.mcp_server.asked import Asked
from hivepipe.reading.files import Change, changed_files, last_first

_LONGEST = 1000


def answer(asked: Asked) -> Answer:
    """Return a row for each file and session, the newest change first."""
    part, session, since = asked.text("path"), asked.text("session"), asked.day("since")
    of_homes, problems = asked.of_each(
        lambda known: changed_files(
            [known], part=part, session=session, since=since, folder=asked.folder
        )
    )
    found = last_first(chain.from_iterable(of_homes))
    facts = filled(found=len(found), unreadable=problems)
    return Answer(map(_row, found), facts, asked.number("limit"))


def _row(change: Change) -> Row:
    return filled(
        file=short(change.path, _LONGEST),
        session=change.session,
        title=short(change.title, 200),
        agents=[short(agent, 200) for agent in change.agents[:20]],
        last_at=change.last_at,
        project=short(change.project, _LONGEST),
    )
