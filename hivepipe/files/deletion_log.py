"""deletions.log in the home: every deletion by retention, one JSON object per line.

{"at": "2026-11-22T09:00:00Z", "kind": "archive", "path": "...", "age_days": 401.2,
 "rule": "[retention] archives = 365"}
"""

import time
from typing import NamedTuple

from hivepipe.files.json_log import append, entries

NAME = "deletions.log"


class Deletion(NamedTuple):
    """One deleted file, or a number of rows of one table."""

    at: str
    kind: str
    path: str
    age_days: float
    rule: str
    number: int = 1


def record(home: str, kind: str, path: str, age_secs: float, rule: str, number: int = 1) -> None:
    """Append one deletion in a single write. Raises OSError."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    entry = Deletion(at, kind, path, round(age_secs / 86_400, 1), rule, number)
    append(home, NAME, entry._asdict())


def deletions(home: str) -> list[Deletion]:
    """Return the deletions, oldest first; invalid lines are skipped."""
    found = []
    for entry in entries(home, NAME):
        try:
            found.append(Deletion(**entry))
        except TypeError:
            continue
    return found
