"""The views: what each reads for a choice in the address. No SQL here."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from hivepipe.db.listings import Entry
from hivepipe.reading.agents import agents as agents_by_session
from hivepipe.reading.costs import DayCost, costs_by_day, newest_message
from hivepipe.reading.now import open_sessions
from hivepipe.reading.own_spending import own_spending
from hivepipe.reading.skills import skills_used
from hivepipe.skills.statistics import local_day
from hivepipe.web.asked import Asked, Content, day_begins
from hivepipe.web.search_view import search
from hivepipe.web.trend import first_day, trend_of

MOST_ROWS = 500
MOST_SESSIONS = 200


def now(asked: Asked) -> Content:
    """Return the open sessions; `all=1`: ended ones, too."""
    with_ended = asked.filter("all") == "1"
    found = open_sessions(asked.homes, with_ended, MOST_SESSIONS + 1)
    return {
        "sessions": found[:MOST_SESSIONS],
        "has_more": len(found) > MOST_SESSIONS,
        "all": with_ended,
    }


def agents(asked: Asked) -> Content:
    """Return the newest agents by session; `type`, `outcome`: only those of it."""
    kind, outcome = asked.filter("type"), asked.filter("outcome")
    found = agents_by_session(asked.homes, MOST_ROWS, kind, outcome)
    return {"sessions": found.sessions, "has_more": found.has_more}


def costs(asked: Asked) -> Content:
    """Return tokens and cost by day, model and project; `since` and `until` are local days.

    With neither of them those of the last days, up to the newest message; `all=1`: all.
    """
    model, since, until = (asked.filter(name) for name in ("model", "since", "until"))
    if not (since or until or asked.filter("all") == "1"):
        since = first_day(local_day(newest_message(asked.homes)))
    day_begins(until, name="until")
    chosen = [
        each
        for each in costs_by_day(asked.homes, day_begins(since))
        if model in ("", each.model) and (not until or each.day < until)
    ]
    return {**costs_content(chosen, since), "own": own_spending().entry()}


def costs_content(chosen: Sequence[DayCost], since: str) -> Content:
    """Return the rows of the view with their sums, without our own spending."""
    dollars = [each.cost_usd or 0 for each in chosen]
    read = sum(each.tokens.cache_read for each in chosen)
    prompt = sum(each.tokens.prompt for each in chosen)
    return {
        "costs": [_day_cost(each) for each in chosen[:MOST_ROWS]],
        "total_usd": round(sum(dollars), 6),
        "cache_share": _share(read, prompt),
        "dearest_usd": max(dollars, default=0),
        "trend": trend_of(chosen),
        "own": None,
        "since": since,
        "left_out": max(len(chosen) - MOST_ROWS, 0),
    }


def _day_cost(each: DayCost) -> Entry:
    share = _share(each.tokens.cache_read, each.tokens.prompt)
    return {**vars(each), "tokens": each.tokens._asdict(), "cache_share": share}


def _share(part: int, whole: int) -> float | None:
    """Return a share, to four digits; None: of nothing."""
    return round(part / whole, 4) if whole else None


def skills(asked: Asked) -> Content:
    """Return the skills, most used first."""
    found = skills_used(asked.homes)
    return {"skills": found[:MOST_ROWS], "left_out": max(len(found) - MOST_ROWS, 0)}


def queues(asked: Asked) -> Content:
    """Return the queues of each stack."""
    return _imported("queues_view").queues(asked)  # type: ignore[no-any-return]


def health(asked: Asked) -> Content:
    """Return the report on each stack."""
    return _imported("health_view").health(asked)  # type: ignore[no-any-return]


def _imported(module: str) -> Any:
    return import_module(f"hivepipe.web.{module}")


VIEWS: dict[str, Callable[[Asked], Content]] = {
    "now": now,
    "agents": agents,
    "search": search,
    "costs": costs,
    "skills": skills,
    "queues": queues,
    "health": health,
}
OF_STACKS = ("queues", "health")  # they change without the databases
