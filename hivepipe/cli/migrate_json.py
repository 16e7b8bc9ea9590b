"""The JSON of `migrate`: the plan, its result, and what `--undo` restored."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hivepipe.migration import record as records
from hivepipe.migration.carry_out import Result
from hivepipe.migration.hooks import Pair, command_of
from hivepipe.migration.plan import Plan
from hivepipe.migration.record import Record
from hivepipe.migration.rows import ImportResult

Entry = dict[str, Any]


def plan_entry(plan: Plan, rehearsed: ImportResult) -> Entry:
    """Return the files that `migrate` found, and its planned steps."""
    return {
        "project": plan.project,
        "home": plan.home,
        "registered": plan.is_registered,
        "hooks": [
            {
                "path": each.path,
                "old": _commands(each.old),
                "left": _commands(each.doubtful),
                "trouble": each.trouble,
            }
            for each in plan.hooks
        ],
        "moves": [{"source": each.source, "target": each.target} for each in plan.moves],
        "elsewhere": [str(each.folder) for each in plan.elsewhere],
        "processes": [{"pid": each.pid, "command": each.text} for each in plan.processes()],
        "queues": [
            {"folder": str(each.queue), "files": each.queued} for each in plan.homes() if each.queue
        ],
        "files": plan.files._asdict() if plan.files else None,
        "kept": _kept(plan.record),
        "rows": _rows(rehearsed),
    }


def result_entry(plan: Plan, result: Result) -> Entry:
    """Return the outcome of each row and file, and where the old homes are kept."""
    return {
        "kept": _kept(records.read(plan.project)),
        "rows": _rows(result.rows),
        "files": [each._asdict() for each in result.files],
    }


def undone_entry(record: Record) -> Entry:
    """Return the hooks and homes that `--undo` restored."""
    return {
        "homes": [move.source for move in record.moves if os.path.lexists(move.source)],
        "hooks": [{"path": each.path, "old": _commands(each.hooks)} for each in record.settings],
    }


def _kept(record: Record | None) -> list[str]:
    return [each for each in record.asides if os.path.isdir(each)] if record else []


def _commands(pairs: Iterable[Pair]) -> list[Entry]:
    return [{"event": event, "command": command_of(entry)} for event, entry in pairs]


def _rows(taken: ImportResult) -> Entry:
    outcomes = taken.imported.outcomes
    return {
        "totals": dict(Counter(each.outcome for each in outcomes)),
        "entries": [each._asdict() for each in outcomes],
        "left_out": [each._asdict() for each in taken.left_out],
        "local_times": taken.imported.local_times,
    }
