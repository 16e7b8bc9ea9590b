"""The view Health: the report on each stack, doctor's findings and disk usage."""

from dataclasses import dataclass

from hivepipe.db.listings import Entry
from hivepipe.doctor.checks import Examination, examined
from hivepipe.doctor.facts import Facts
from hivepipe.errors import RetentionError
from hivepipe.maintenance.disk_usage import DiskUsage, disk_usage
from hivepipe.monitor.status import settled_report
from hivepipe.monitor.status_words import verdict
from hivepipe.reading.homes import KnownHome, settings_of
from hivepipe.stack.condition import FINE
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import ProcessTable
from hivepipe.times import now
from hivepipe.web.background_cache import BackgroundCache
from hivepipe.web.view_query import Content, ViewQuery


@dataclass(frozen=True)
class _Checks:
    """The results of the checks of a home; `disk` is None if `disk_trouble` has an error."""

    at: str
    examination: Examination
    disk: DiskUsage | None
    disk_trouble: str


LATER = "This takes longer: it is shown here in some seconds."
_checks: BackgroundCache[_Checks] = BackgroundCache()


def health(query: ViewQuery) -> Content:
    """Return condition, processes and alerts of each stack, doctor's findings and disk usage.

    `doctor` is None while the checks run. With `only=problems`, healthy stacks are left out.
    """
    table = ProcessTable()
    # The checks start after all reports, so that they do not delay the reports. They are requested
    # from the last stack to the first, because the newest request is computed first: so the page is
    # filled from its top.
    reports = [(known, _report(known, table)) for known in query.homes]
    stacks = [_with_checks(query, known, report) for known, report in reversed(reports)][::-1]
    if query.filter("only") == "problems":
        stacks = [stack for stack in stacks if _has_problem(stack)]
    return {"stacks": stacks, "left_out": len(query.homes) - len(stacks)}


def _has_problem(stack: Entry) -> bool:
    is_examined = stack["doctor"] is None or stack["doctor"]["healthy"]
    return bool(stack["alerts"]) or not (stack["is_fine"] and is_examined)


def _report(known: KnownHome, table: ProcessTable) -> Entry:
    place = known.place()
    with settings_of(known.home):
        return settled_report(place, Stack.of(place), table)


def _with_checks(query: ViewQuery, known: KnownHome, report: Entry) -> Entry:
    found = _checks.get(known.home, lambda: _check(known), query.on_ready)
    return {
        **report,
        "verdict": verdict(report),
        "is_fine": report["condition"] in FINE,
        "key": known.key,
        "project": known.project,
        "checked_at": found.at if found else "",
        "doctor": found.examination.entry() if found else None,
        "disk": found.disk.entry() if found and found.disk else None,
        "kept": found.disk.kept if found and found.disk else "",
        "disk_trouble": found.disk_trouble if found else LATER,
    }


def _check(known: KnownHome) -> _Checks:
    """Run doctor's checks in the project's folder, and measure the disk usage."""
    place = known.place()
    with settings_of(known.home):
        examination = examined(Facts(place, Stack.of(place), place.project))
        try:
            return _Checks(now()[0], examination, disk_usage(place), "")
        except RetentionError as error:
            return _Checks(now()[0], examination, None, str(error))
