"""The name of a project in a team: the same on all machines, and without local paths.

The name is host and path of the git remote `origin`, or else the name of the folder.
"""

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from urllib.parse import urlsplit

from hivepipe import git
from hivepipe.db import changes as captured
from hivepipe.db.database import Database
from hivepipe.db.listings import Listings, listings
from hivepipe.errors import TeamError
from hivepipe.home import main_checkout
from hivepipe.team.shared_rows import clean

CACHED_SECS = 60.0  # a remote can change

_SHORT = re.compile(r"^(?:[^@/]+@)?([\w.-]+):(?!/)(.+)$")  # git@host:path
# Otherwise git refuses to read another user's checkout, as in a container.
_OF_ANY_OWNER = ("-c", "safe.directory=*")


def name_of_session(store: Listings, session: str) -> str | None:
    """Return the name of a session's project, or None while it is unknown. May raise TeamError."""
    folder, sent = captured.project_of(store, session), captured.sent_project(store, session)
    known = sent.name if sent else None
    return known if folder is None else project_name(folder, known)


def keep_names(db: Database, sessions: Iterable[str]) -> None:
    """Store the names of sessions' projects before their rows are deleted.

    The names decide whether the deletion is sent to the server. A name stays unknown if git does
    not tell it.
    """
    with listings(db.path) as store:
        if not captured.is_captured(store):
            return
        for session in sessions:
            with suppress(TeamError):
                _keep_name(db, store, session)


def _keep_name(db: Database, store: Listings, session: str) -> None:
    sent, name = captured.sent_project(store, session), name_of_session(store, session)
    if name is not None and (sent is None or sent.name is None):
        with db.transaction():
            captured.keep_sent_project(db, session, name)


def project_name(folder: str, known: str | None = None) -> str | None:
    """Return the name of the project in a folder, or "" for a path that is not absolute.

    For a folder that is gone, or that git cannot read, return `known`, the name stored earlier, or
    None. The folder's own name could have another level of sharing; it is returned only for a
    folder that is gone and has no stored name. Raise TeamError if git does not answer.
    """
    if not folder.startswith("/"):  # the search upwards from a relative path would not end
        return ""
    checkout = main_checkout(folder)
    of_folder = clean(checkout.rstrip("/").rpartition("/")[2])
    if not os.path.isdir(checkout):
        return known or of_folder
    if not git.is_below_a_repository(checkout):
        return of_folder
    remote = _remote(checkout, int(time.monotonic() / CACHED_SECS))
    return known if remote is None else name_of_remote(remote) or of_folder


@lru_cache(maxsize=512)
def _remote(checkout: str, _minute: int) -> str | None:
    """Return the URL of a checkout's `origin`, "" without one, or None if git cannot read it.

    Raise TeamError if git is missing or does not answer.
    """
    done = git.ask(checkout, *_OF_ANY_OWNER, "config", "--get", "remote.origin.url")
    if done is None:
        raise TeamError(
            f"the remote of {checkout} is unknown: git is not installed, or does not answer"
        )
    return clean(done.stdout).strip() if done.returncode in (0, 1) else None


def name_of_remote(url: str) -> str:
    """Return host and path of a remote without its login, or "" for a local path."""
    short = _SHORT.match(url)
    if short and "://" not in url:
        host, path = short[1].lower(), short[2]
    else:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
    path = path.strip("/").removesuffix(".git")
    return f"{host}/{path}" if host and path else ""
