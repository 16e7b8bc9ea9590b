"""The uses of skills in several homes."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from hivepipe.db.skills import skill_statistics
from hivepipe.errors import NothingRecordedError
from hivepipe.reading.homes import KnownHome
from hivepipe.skills.statistics import local_day


@dataclass(frozen=True)
class SkillUses:
    """The uses of one skill in one project; `last_used` is a stored time."""

    skill: str
    project: str
    uses: int
    failures: int
    sessions: int
    last_used: str


def skills_used(homes: Iterable[KnownHome]) -> list[SkillUses]:
    """Return the skills of all homes, most used first."""
    found: list[SkillUses] = []
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            for name, skill in skill_statistics(store, local_day).items():
                found.append(
                    SkillUses(
                        skill=name,
                        project=known.project or known.home,
                        uses=skill.count,
                        failures=skill.count - skill.successes,
                        sessions=len(skill.sessions),
                        last_used=skill.last_used,
                    )
                )
    return sorted(found, key=lambda each: each.uses, reverse=True)
