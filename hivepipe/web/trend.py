"""The chart of costs by day."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta

from hivepipe.db.listings import Entry
from hivepipe.reading.costs import GroupCost
from hivepipe.web.bar_chart import bars

DAYS = 30


def first_day(last: str) -> str:
    """Return the first of the DAYS days that end with day `last`, or "" for an invalid day."""
    try:
        return f"{date.fromisoformat(last) - timedelta(DAYS - 1)}"
    except (ValueError, OverflowError):
        return ""


def trend_of(costs: Iterable[GroupCost]) -> list[Entry]:
    """Return cost and bar of the DAYS days that end with the newest day; [] if there are no costs.

    A day in the future does not count as the newest day: the clock was ahead at that time.
    """
    by_day: dict[str, float] = defaultdict(float)
    for each in costs:
        by_day[each.key["day"]] += each.cost.rounded or 0
    today = f"{date.today()}"  # noqa: DTZ011  as in `local_day`
    first = first_day(max(by_day, key=lambda day: (day <= today, day), default=""))
    if not first:
        return []
    days = [f"{date.fromisoformat(first) + timedelta(number)}" for number in range(DAYS)]
    drawn = bars([by_day[day] for day in days], DAYS)
    return [
        {"day": day, "cost_usd": round(by_day[day], 6), **bar}
        for day, bar in zip(days, drawn, strict=True)
    ]
