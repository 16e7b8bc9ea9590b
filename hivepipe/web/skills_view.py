"""The view Skills: how often each was used."""

from hivepipe.reading.skills import skills_used
from hivepipe.web.asked import Asked, Content

MOST_SKILLS = 500


def skills(asked: Asked) -> Content:
    """Return the skills, most used first; `skill`: part of the name; `failed=1`: with failures."""
    part, only_failed = asked.filter("skill").casefold(), asked.filter("failed") == "1"
    found = [
        each
        for each in skills_used(asked.homes)
        if part in each.skill.casefold() and (each.failures or not only_failed)
    ]
    return {"skills": found[:MOST_SKILLS], "left_out": max(len(found) - MOST_SKILLS, 0)}
