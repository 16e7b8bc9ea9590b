"""Stop the change capture of homes whose uplink does not run."""

from contextlib import closing, suppress

from hivepipe.db.changes import stop_capture
from hivepipe.db.database import Database
from hivepipe.db.location import database_in
from hivepipe.errors import StoreError
from hivepipe.home import tree_of


def stop(home: str) -> None:
    """Drop the triggers of a home; if its database cannot be opened, its next uplink drops them."""
    path = database_in(home, tree_of(home))
    if path.exists():
        with suppress(StoreError), closing(Database(path)) as db:
            stop_capture(db)
