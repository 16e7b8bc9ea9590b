"""The view Skills: how often each skill was used."""

from hivepipe.reading.skills import skills_used
from hivepipe.web.view_query import Content, ViewQuery

MOST_SKILLS = 500


def skills(query: ViewQuery) -> Content:
    """Return skills, most used first, filtered by a part of the name and `failed=1`."""
    part, only_failed = query.filter("skill").casefold(), query.filter("failed") == "1"
    found = [
        each
        for each in skills_used(query.homes)
        if part in each["skill"].casefold() and (each["failures"] or not only_failed)
    ]
    return {"skills": found[:MOST_SKILLS], "left_out": max(len(found) - MOST_SKILLS, 0)}
