"""The uses of skills in several homes."""

from collections.abc import Iterable
from contextlib import suppress

from hivepipe.db.listings import Entry
from hivepipe.db.skills import skill_statistics
from hivepipe.errors import NothingRecordedError
from hivepipe.reading.homes import KnownHome
from hivepipe.skills.statistics import local_day


def skills_used(homes: Iterable[KnownHome]) -> list[Entry]:
    """Return the uses of each skill in each project, most used first.

    Homes without a database are left out. Raise StoreError if a database cannot be read.
    """
    found: list[Entry] = []
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            found += (
                {
                    "skill": name,
                    "project": known.project or known.home,
                    "uses": skill.count,
                    "failures": skill.count - skill.successes,
                    "sessions": len(skill.sessions),
                    "last_used": skill.last_used,
                }
                for name, skill in skill_statistics(store, local_day).items()
            )
    return sorted(found, key=lambda each: each["uses"], reverse=True)
