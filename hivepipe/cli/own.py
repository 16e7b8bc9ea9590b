"""The profile and swarm that a command uses: those of a session that starts in the same folder."""

from hivepipe import settings
from hivepipe.events.claude_code import valid_id
from hivepipe.home import Place, short_hash


def own_profile() -> str:
    """Return the id of the profile, or ""."""
    return valid_id(settings.variable("HIVEPIPE_AGENT_ID") or "")


def own_swarm(place: Place) -> str:
    """Return the swarm, by default one per project."""
    named = valid_id(settings.variable("HIVEPIPE_SWARM_ID") or "")
    return named or f"swarm-{short_hash(place.project)}"
