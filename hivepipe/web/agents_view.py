"""The view Agents: the newest agents by session."""

from hivepipe.reading.agents import agents as agents_by_session
from hivepipe.web.asked import Asked, Content

MOST_AGENTS = 500


def agents(asked: Asked) -> Content:
    """Return the newest agents by session, filtered by `type` and `outcome`."""
    kind, outcome = asked.filter("type"), asked.filter("outcome")
    found = agents_by_session(asked.homes, MOST_AGENTS, kind, outcome)
    return {"sessions": found.sessions, "has_more": found.has_more}
