"""Stop the change capture of homes whose uplink does not run."""

from contextlib import suppress

from hivepipe.db.changes import stop_capture
from hivepipe.db.database import opened
from hivepipe.db.location import database_path
from hivepipe.errors import StoreError


def stop(home: str) -> None:
    """Drop the triggers of a home, whose settings are in force.

    A database that cannot be used keeps them.
    """
    path = database_path(home)
    if path.exists():
        with suppress(StoreError), opened(path) as db:
            stop_capture(db)
