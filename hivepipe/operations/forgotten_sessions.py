"""The forgotten sessions, for handlers of files.

The list is cached until the marker file `forgotten` changes, because opening the store for each
turn would read as much as a short turn itself.
"""

import time
from functools import lru_cache

from hivepipe.db.forget import forgotten_sessions
from hivepipe.db.location import database_path
from hivepipe.files.change_stamp import Stamp, stamp
from hivepipe.home import write_small


def is_forgotten(home: str, *sessions: str) -> bool:
    return not _forgotten(home, stamp(_marker(home))).isdisjoint(sessions)


def update_marker(home: str) -> None:
    """Change the marker, so that every process of the home reads the list again."""
    write_small(_marker(home), f"{time.time_ns()}\n")


@lru_cache(maxsize=4)
def _forgotten(home: str, _stamp: Stamp) -> frozenset[str]:
    return frozenset(forgotten_sessions(database_path(home)))


def _marker(home: str) -> str:
    return f"{home}/forgotten"
