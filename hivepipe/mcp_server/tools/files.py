"""Tool `files`: changed files and who changed them."""

from hivepipe.mcp_server.answer import Answer, Row, filled, short
from hivepipe.mcp_server.asked import Asked
from hivepipe.reading.files import Change, changed_files

_LONGEST = 1000


def answer(asked: Asked) -> Answer:
    """Return a row for each file and session, the last change first."""
    found = changed_files(
        asked.homes,
        part=asked.text("path"),
        session=asked.text("session"),
        since=asked.day("since"),
        folder=asked.folder,
    )
    return Answer(map(_row, found), {"found": len(found)}, asked.number("limit"))


def _row(change: Change) -> Row:
    return filled(
        file=short(change.path, _LONGEST),
        session=change.session,
        title=short(change.title, 200),
        agents=[short(agent, 200) for agent in change.agents[:20]],
        last_at=change.last_at,
        project=short(change.project, _LONGEST),
    )
