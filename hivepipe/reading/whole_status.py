"""The output of `hivepipe status --json`; the page serves it at `/status.json`, too."""

import time
from typing import Any

from hivepipe.config.asking import waiting
from hivepipe.errors import HivepipeError
from hivepipe.home import Place
from hivepipe.monitor.status import settled_report
from hivepipe.operations.deletion_day import first_deletion
from hivepipe.operations.prune_files import Outdated, announced_deletions
from hivepipe.stack.runtime_folder import Stack
from hivepipe.times import stored_time


def whole_report(place: Place) -> dict[str, Any]:
    """Return the report of a stack, with two additions.

    `deletions` has the data that retention will delete. `asking` has the files of the repository on
    which the user has not decided (`hivepipe trust`).
    """
    return {
        **settled_report(place, Stack.of(place)),
        "deletions": _announced(place.home),
        "asking": [file.name for file in waiting(place.home, place.project)],
    }


def _announced(home: str) -> list[dict[str, Any]]:
    """Return the data that retention deletes after an installation's first day, by rule."""
    try:
        found = announced_deletions(home, time.time())
        at = stored_time(round(first_deletion(home) * 1e9)) if found else ""
    except (HivepipeError, OSError):  # in this case retention deletes nothing
        return []
    by_rule: dict[tuple[str, str], list[Outdated]] = {}
    for each in found:
        by_rule.setdefault((each.kind, each.rule), []).append(each)
    return [
        {
            "kind": kind,
            "number": len(files),
            "oldest_days": round(max(each.age_secs for each in files) / 86_400, 1),
            "at": at,
            "rule": rule,
            "paths": [each.path for each in files],
        }
        for (kind, rule), files in by_rule.items()
    ]
