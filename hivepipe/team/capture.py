"""Stop the change capture of homes whose uplink does not run."""

from contextlib import suppress

from hivepipe.db.changes import is_captured, stop_capture
from hivepipe.db.home_database import opened
from hivepipe.db.location import database_path
from hivepipe.errors import StoreError


def stop(home: str) -> None:
    """Drop the triggers of a home, whose settings are in force.

    A database that cannot be used keeps them.
    """
    if database_path(home).exists():
        with suppress(StoreError), opened(home) as db:
            if is_captured(db):
                stop_capture(db)
