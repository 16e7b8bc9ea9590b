"""The view Now: the open sessions."""

from hivepipe.reading.now import open_sessions
from hivepipe.web.asked import Asked, Content

MOST_SESSIONS = 200


def now(asked: Asked) -> Content:
    """Return the open sessions; `all=1` includes ended ones."""
    with_ended = asked.filter("all") == "1"
    found = open_sessions(asked.homes, with_ended, MOST_SESSIONS + 1)
    return {
        "sessions": found[:MOST_SESSIONS],
        "has_more": len(found) > MOST_SESSIONS,
        "all": with_ended,
    }
