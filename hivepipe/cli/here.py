"""The home, database, profile and swarm of the current folder."""

import os
from contextlib import AbstractContextManager

from hivepipe import settings
from hivepipe.db.listings import Listings, listings
from hivepipe.db.location import database_path
from hivepipe.errors import NothingRecordedError
from hivepipe.events.claude_code import valid_id
from hivepipe.home import Place, locate, short_hash


def store_here() -> AbstractContextManager[Listings]:
    """Open the database for a block. Raises StoreError if nothing is recorded yet."""
    return listings(database_path(locate(".").home))


def refuse_missing(home: str) -> None:
    """Raise NothingRecordedError for a home that does not exist, OSError if it cannot be seen."""
    try:
        os.stat(home)
    except FileNotFoundError:
        raise NothingRecordedError(database_path(home)) from None


def own_profile() -> str:
    """Return the id of the profile of a session that starts here, or ""."""
    return valid_id(settings.variable("HIVEPIPE_AGENT_ID") or "")


def own_swarm(place: Place) -> str:
    """Return the swarm of a session that starts here, by default one per project."""
    named = valid_id(settings.variable("HIVEPIPE_SWARM_ID") or "")
    return named or f"swarm-{short_hash(place.project)}"
