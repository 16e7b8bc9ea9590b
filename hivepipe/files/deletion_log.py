"""deletions.log in the home: every deletion by retention, one JSON object per line.

{"at": "2026-11-22T09:00:00Z", "kind": "archive", "path": "...", "age_days": 401.2,
 "rule": "[retention] archives = 365"}
"""

import time
from dataclasses import dataclass

from hivepipe.files.json_log import append, entries

NAME = "deletions.log"


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of one file, or of a number of rows of one table."""

    at: str
    kind: str
    path: str
    age_days: float
    rule: str
    number: int = 1


def record(home: str, kind: str, path: str, age_secs: float, rule: str, number: int = 1) -> None:
    """Append one deletion in a single write. Raises OSError."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    append(home, NAME, Deletion(at, kind, path, round(age_secs / 86_400, 1), rule, number))


def deletions(home: str) -> list[Deletion]:
    """Return the deletions, oldest first; skip invalid lines. Raises OSError."""
    return [*entries(home, NAME, Deletion)]
