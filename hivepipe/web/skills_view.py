"""The view Skills: how often each was used."""

from hivepipe.reading.skills import skills_used
from hivepipe.web.asked import Asked, Content

MOST_SKILLS = 500


def skills(asked: Asked) -> Content:
    """Return the skills, most used first."""
    found = skills_used(asked.homes)
    return {"skills": found[:MOST_SKILLS], "left_out": max(len(found) - MOST_SKILLS, 0)}
