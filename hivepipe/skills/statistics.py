"""Statistics of skill uses."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

KEPT_INVOCATIONS = 100


class SkillUse(NamedTuple):
    """One use of a skill, or of a typed command that is not a skill."""

    skill: str
    time: str  # UTC, in the form of stored times
    session: str
    arguments: str
    success: bool
    is_skill: bool = True
    is_imported: bool = False  # the use is in a predecessor's file, whose totals include it


class ImportedSkill(NamedTuple):
    """The entry of one skill in a predecessor's skill-usage.json."""

    skill: str
    uses: int
    successes: int
    last_used: str
    sessions: tuple[str, ...]
    days: Mapping[str, int]


@dataclass(slots=True)
class SkillStatistics:
    """The statistics of one skill; the last KEPT_INVOCATIONS uses are kept in full."""

    count: int = 0
    successes: int = 0
    last_used: str = ""
    invocations: deque[SkillUse] = field(default_factory=lambda: deque(maxlen=KEPT_INVOCATIONS))
    sessions: dict[str, str] = field(default_factory=dict)  # session -> last use; newest at the end
    daily: Counter[str] = field(default_factory=Counter)

    @property
    def success_rate(self) -> float:
        """Return the share of successful uses; 0 for an imported skill without uses."""
        return round(self.successes / max(self.count, 1), 4)

    def add(self, use: SkillUse, day: str) -> None:
        """Count one use; uses must be added in order of time."""
        if not use.is_imported:
            self.count += 1
            self.successes += use.success
            self.daily[day] += 1
        self.last_used = max(self.last_used, use.time)
        self.invocations.append(use)
        self.sessions.pop(use.session, None)
        self.sessions[use.session] = use.time

    def start_with(self, imported: ImportedSkill) -> None:
        """Set the totals to those of a predecessor; call this before `add`."""
        self.count, self.successes = imported.uses, imported.successes
        self.last_used = imported.last_used
        self.sessions = dict.fromkeys(imported.sessions, "")
        self.daily.update(imported.days)


def statistics(
    uses: Iterable[SkillUse],
    day_of: Callable[[str], str],
    imported: Iterable[ImportedSkill] = (),
) -> dict[str, SkillStatistics]:
    """Return the statistics by skill; `uses` are oldest first, `day_of` returns the local day."""
    skills: dict[str, SkillStatistics] = {}
    for each in imported:
        skills.setdefault(each.skill, SkillStatistics()).start_with(each)
    for use in uses:
        skills.setdefault(use.skill, SkillStatistics()).add(use, day_of(use.time))
    return dict(sorted(skills.items()))


def local_day(time: str) -> str:
    """Return the local day of a time; of an invalid or empty time, its first ten characters."""
    if not time:
        return ""
    try:
        return datetime.fromisoformat(time).astimezone().date().isoformat()
    except (ValueError, OverflowError):  # the first or last hours of the calendar
        return time[:10]
