"""The geometry of the cost chart's SVG, in percent of its width and height."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from hivepipe.reading.costs import DayCost

DAYS = 30
_GAP = 0.2  # share of a day's slot


@dataclass(frozen=True)
class DayBar:
    """The cost of one day; `x`, `y`, `width` and `height` are in percent."""

    day: str
    cost_usd: float
    x: float
    y: float
    width: float
    height: float


def first_day(last: str) -> str:
    """Return the first of the DAYS days up to this one, or "" if it is not a valid day."""
    try:
        return f"{date.fromisoformat(last) - timedelta(DAYS - 1)}"
    except (ValueError, OverflowError):
        return ""


def trend_of(costs: Iterable[DayCost]) -> list[DayBar]:
    """Return a bar for each of the DAYS days up to the newest one, or [] without costs."""
    by_day: dict[str, float] = {}
    for each in costs:
        by_day[each.day] = by_day.get(each.day, 0) + (each.cost_usd or 0)
    first = first_day(max(by_day, default=""))
    if not first:
        return []
    days = [f"{date.fromisoformat(first) + timedelta(number)}" for number in range(DAYS)]
    dearest = max(by_day.get(day, 0) for day in days) or 1
    place = 100 / DAYS
    return [
        DayBar(
            day=day,
            cost_usd=round(by_day.get(day, 0), 6),
            x=round(number * place, 3),
            y=round(100 * (1 - by_day.get(day, 0) / dearest), 3),
            width=round(place * (1 - _GAP), 3),
            height=round(100 * by_day.get(day, 0) / dearest, 3),
        )
        for number, day in enumerate(days)
    ]
