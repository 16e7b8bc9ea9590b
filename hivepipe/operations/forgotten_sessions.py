"""The forgotten sessions, for handlers of files.

The list is cached until the marker file `forgotten` changes, because opening the store costs as
much as archiving a short turn. The file names the sessions that may still have data outside the
store.
"""

import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from hivepipe.db.forget import forgotten_sessions
from hivepipe.db.location import database_path
from hivepipe.files.change_stamp import Stamp, stamp
from hivepipe.files.regular_file import read_text
from hivepipe.home import write_small
from hivepipe.stack.lock import locked_file

_LOCK_SECS = 30.0


def is_forgotten(home: str, *sessions: str) -> bool:
    return not _forgotten(home, stamp(_marker(home))).isdisjoint(sessions)


def update_marker(home: str, begun: Iterable[str] = (), finished: Iterable[str] = ()) -> None:
    """Add the sessions `begun` to the marker file, and remove the sessions `finished`.

    The change makes every process of the home read the list of forgotten sessions again. Raise
    LockHeldError if another process keeps the marker locked.
    """
    # Writing replaces the locked file, so it is the last step; a waiting process then locks the new
    # file.
    with locked_file(_marker(home), _LOCK_SECS):
        sessions = _named(home).union(begun).difference(finished)
        write_small(_marker(home), "\n".join([f"{time.time_ns()}", *sorted(sessions), ""]))


def unfinished_sessions(home: str) -> set[str]:
    """Return the forgotten sessions that may still have data outside of the store.

    The marker may also name a session that is not forgotten: its deletion was rolled back, or a
    backup was restored.
    """
    return _named(home) & forgotten_sessions(database_path(home))


def _named(home: str) -> set[str]:
    path = Path(_marker(home))
    lines = read_text(path, errors="replace").split("\n") if path.exists() else []
    return {*lines[1:]} - {""}


@lru_cache(maxsize=4)
def _forgotten(home: str, _stamp: Stamp) -> frozenset[str]:
    return frozenset(forgotten_sessions(database_path(home)))


def _marker(home: str) -> str:
    return f"{home}/forgotten"
