"""The user that a file belongs to."""

import os
import pwd
from contextlib import suppress
from tempfile import TemporaryFile


def user_name(uid: int) -> str:
    """Return the name of a user, or `#<uid>` if the uid has no name, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def another_owner(path: str) -> str:
    """Return the name of the user, other than this one, who owns a file, or "".

    Return "" for root, who can change every file. Return "" also on a file system that shows the
    same owner for all files, such as a shared folder of a virtual machine.
    """
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return ""
    if os.geteuid() in (0, owner):
        return ""
    with suppress(OSError), TemporaryFile(dir=os.path.dirname(path)) as new:
        if os.fstat(new.fileno()).st_uid == owner:
            return ""
    return user_name(owner)
