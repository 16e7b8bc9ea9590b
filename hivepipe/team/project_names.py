"""The name of a project in a team: the same on all machines, and without local paths.

It is host and path of its git remote `origin`, or else the name of its folder.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from hivepipe import git
from hivepipe.home import main_checkout

_SHORT = re.compile(r"^(?:[^@/]+@)?([\w.-]+):(?!/)(.+)$")  # git@host:path


@lru_cache(maxsize=512)
def project_name(folder: str) -> str:
    """Return the name of the project in a folder, or "" for a path that is not absolute."""
    if not folder.startswith("/"):  # the search upwards from a relative path would not end
        return ""
    checkout = main_checkout(folder)
    origin = git.answer(checkout, "config", "--get", "remote.origin.url") or ""
    return name_of_remote(origin) or checkout.rstrip("/").rpartition("/")[2]


def name_of_remote(url: str) -> str:
    """Return host and path of a remote without its login, or "" for a local path."""
    short = _SHORT.match(url)
    if short and "://" not in url:
        host, path = short[1], short[2]
    else:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
    path = path.strip("/").removesuffix(".git")
    return f"{host}/{path}" if host and path else ""
