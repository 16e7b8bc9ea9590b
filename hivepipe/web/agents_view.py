"""The view Agents: the newest agents by session."""

from hivepipe.reading.agents import agents as agents_by_session
from hivepipe.web.view_query import Content, ViewQuery

MOST_AGENTS = 500


def agents(query: ViewQuery) -> Content:
    """Return the newest agents by session, filtered by `type` and `outcome`."""
    kind, outcome = query.filter("type"), query.filter("outcome")
    found, has_more = agents_by_session(query.homes, MOST_AGENTS, kind, outcome)
    return {"sessions": found, "has_more": has_more}
