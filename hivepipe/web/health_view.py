"""The view of health: the report on each stack, doctor's findings, disk use."""

from dataclasses import dataclass

from hivepipe.db.listings import Entry
from hivepipe.doctor.examination import Examination, examined
from hivepipe.doctor.facts import Facts
from hivepipe.errors import RetentionError
from hivepipe.maintenance.disk_usage import DiskUsage, disk_usage
from hivepipe.monitor.status import status_report
from hivepipe.reading.homes import KnownHome
from hivepipe.stack.lock import Stack
from hivepipe.times import now
from hivepipe.web.asked import Asked, Content
from hivepipe.web.kept import Kept


@dataclass(frozen=True)
class _Look:
    """What was found in a home and its project; `disk`: None if `disk_trouble` says why."""

    at: str
    examination: Examination
    disk: DiskUsage | None
    disk_trouble: str


_looks: Kept[_Look] = Kept()


def health(asked: Asked) -> Content:
    """Return condition, processes and alerts of each stack, doctor's findings and disk use."""
    return {"stacks": [_health(known) for known in asked.homes]}


def _health(known: KnownHome) -> Entry:
    look = _looks.get(known.home, lambda: _look(known))
    place = known.place()
    return {
        **status_report(place, Stack.of(place)),
        "project": known.project,
        "checked_at": look.at,
        "doctor": look.examination.entry(),
        "disk": look.disk.entry() if look.disk else None,
        "kept": look.disk.kept if look.disk else "",
        "disk_trouble": look.disk_trouble,
    }


def _look(known: KnownHome) -> _Look:
    """Run doctor's checks as in the project's folder, and measure the disk use."""
    place = known.place()
    facts = Facts(place, Stack.of(place), place.project)
    examination = examined(facts)
    try:
        return _Look(now()[0], examination, disk_usage(place), "")
    except RetentionError as error:
        return _Look(now()[0], examination, None, str(error))
