"""The view Costs: tokens and cost by day, model and project."""

from collections.abc import Sequence

from hivepipe.db.listings import Entry
from hivepipe.reading.costs import GroupCost, costs_by, newest_message
from hivepipe.reading.own_spending import own_or_problem
from hivepipe.skills.statistics import local_day
from hivepipe.web.trend import first_day, trend_of
from hivepipe.web.view_query import Content, ViewQuery, day_begins

MOST_ROWS = 500


def costs(query: ViewQuery) -> Content:
    """Return tokens and cost by day, model and project from `since` to the day before `until`.

    The default is the last 30 days up to the newest message; `all=1` returns all days.
    """
    model, since, until = (query.filter(name) for name in ("model", "since", "until"))
    if not (since or until or query.filter("all") == "1"):
        since = first_day(local_day(newest_message(query.homes)))
    last = local_day(day_begins(until, name="until"))
    chosen = [
        each
        for each in costs_by(query.homes, ("day", "model"), day_begins(since))
        if model in ("", each.key["model"]) and (not last or each.key["day"] < last)
    ]
    return {**costs_content(chosen, since), **own_or_problem()}


def costs_content(chosen: Sequence[GroupCost], since: str) -> Content:
    """Return the view of costs since a day (`since`), without hivepipe's own spending."""
    dollars = [each.cost.rounded or 0 for each in chosen]
    read = sum(each.bill.tokens().cache_read for each in chosen)
    prompt = sum(each.bill.tokens().prompt for each in chosen)
    return {
        "costs": [_day_cost(each) for each in chosen[:MOST_ROWS]],
        "total_usd": round(sum(dollars), 6),
        "models_without_price": sorted({m for each in chosen for m in each.cost.without_price}),
        "cache_share": _share(read, prompt),
        "dearest_usd": max(dollars, default=0),
        "trend": trend_of(chosen),
        "own": None,
        "own_problem": "",
        "since": since,
        "left_out": max(len(chosen) - MOST_ROWS, 0),
    }


def _day_cost(each: GroupCost) -> Entry:
    tokens = each.bill.tokens()
    return {**each.entry(), "cache_share": _share(tokens.cache_read, tokens.prompt)}


def _share(part: int, whole: int) -> float | None:
    """Return `part` divided by `whole` to four decimals, or None if `whole` is 0."""
    return round(part / whole, 4) if whole else None
