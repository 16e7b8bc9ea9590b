"""The view Now: the open sessions."""

from hivepipe.reading.now import open_sessions
from hivepipe.web.view_query import Content, ViewQuery

MOST_SESSIONS = 200


def now(query: ViewQuery) -> Content:
    """Return at most MOST_SESSIONS open sessions; `all=1` includes ended sessions."""
    with_ended = query.filter("all") == "1"
    found = open_sessions(query.homes, with_ended, MOST_SESSIONS + 1)
    return {
        "sessions": found[:MOST_SESSIONS],
        "has_more": len(found) > MOST_SESSIONS,
        "all": with_ended,
    }
