"""Which sessions are not to come back, for handlers of files.

The store knows. Opening it for each turn would read as much as a short turn itself, so it is read
once, and again whenever whoever forgot something has said so.
"""

import time
from functools import lru_cache

from hivepipe.home import write_small
from hivepipe.stamps import Stamp, stamp
from hivepipe.store.forgetting import forgotten_sessions
from hivepipe.store.location import database_path


def is_forgotten(home: str, *sessions: str) -> bool:
    """Did somebody want one of these sessions forgotten?"""
    return not _forgotten(home, stamp(_word(home))).isdisjoint(sessions)


def say_forgotten(home: str) -> None:
    """Have every process of the home read again what is forgotten."""
    write_small(_word(home), f"{time.time_ns()}\n")


@lru_cache(maxsize=4)
def _forgotten(home: str, _stamp: Stamp) -> frozenset[str]:
    return frozenset(forgotten_sessions(database_path(home)))


def _word(home: str) -> str:
    return f"{home}/forgotten"
