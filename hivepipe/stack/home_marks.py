"""Tell whether a folder is or was a home of hivepipe, so that its files may be hivepipe's."""

import os
from pathlib import Path

from hivepipe.db.foreign import is_own
from hivepipe.errors import RegistrationError
from hivepipe.files.owner import another_owner

# Names that never occur in the predecessor's home.
_MARKS = {
    *("appendonly.aof", "appendonlydir", "redis.lock"),
    *("hives", "kernel", "manifest.db", "spool"),
}


def is_marked(home: str) -> bool:
    """Tell whether a folder has hivepipe's database or a file that only hivepipe makes.

    Return False for a link to such a folder.
    """
    return not os.path.islink(home) and has_data(home)


def has_data(home: str) -> bool:
    """Tell whether `is_marked` is true for a folder, or for the folder to which a link leads."""
    return is_whole(home) or (_is_users(home) and is_own(Path(home, "hive.db")))


def has_data_to_adopt(home: str) -> bool:
    """Return the result of `has_data`; raise RegistrationError if another user made the folder."""
    if owner := another_owner(home):
        raise RegistrationError(f"{home} belongs to {owner}: leave out --adopt")
    return has_data(home)


def is_whole(home: str) -> bool:
    """Tell whether a folder is a whole home and not only the data in a work tree."""
    return _is_users(home) and bool(_MARKS & set(os.listdir(home)))


def _is_users(home: str) -> bool:
    """Tell whether the folder exists and belongs to this user.

    In a shared project, another user may have made the folder.
    """
    return os.path.isdir(home) and not another_owner(home)
