"""The user that a file belongs to."""

import os
import pwd


def user_name(uid: int) -> str:
    """Return the name of a user, or `#` and the number without one, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def another_owner(path: str) -> str:
    """Return the name of the other user that a file belongs to, or "".

    To root, which may change every file, none belongs to another.
    """
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return ""
    return "" if os.geteuid() in (0, owner) else user_name(owner)
