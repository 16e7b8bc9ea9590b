"""The database of the current folder's home, opened to read."""

from contextlib import AbstractContextManager

from hivepipe.db.listings import Listings, listings
from hivepipe.db.location import database_path
from hivepipe.home import locate


def store_here() -> AbstractContextManager[Listings]:
    """Open the database for a block. Raises StoreError if nothing is recorded yet."""
    return listings(database_path(locate(".").home))
