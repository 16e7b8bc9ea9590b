"""Tokens and their cost, added up by a key of the charges."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

from hivepipe.costs.bill import Bill, Cost
from hivepipe.costs.price_table import prices_in_force
from hivepipe.costs.tokens import Tokens
from hivepipe.db.listings import Listings
from hivepipe.db.usage import Charge, charges
from hivepipe.errors import NothingRecordedError
from hivepipe.reading.homes import KnownHome
from hivepipe.skills.statistics import local_day
from hivepipe.times import now

Key = tuple[str, ...]

# Group -> the columns of its keys
GROUPS = {
    "day": ("day",),
    "session": ("session",),
    "model": ("model",),
    "agent": ("agent", "type", "session"),
}


def key_by(group: str, day_of: Callable[[str], str]) -> Callable[[Charge], Key]:
    """Return a function from a charge to its key; `day_of` returns the day of a time."""
    keys: dict[str, Callable[[Charge], Key]] = {
        "day": lambda charge: (day_of(charge.time),),
        "session": lambda charge: (charge.session,),
        "model": lambda charge: (charge.rate.model,),
        "agent": lambda charge: (charge.agent, charge.agent_type, charge.session),
    }
    return keys[group]


@dataclass(frozen=True)
class Bills:
    """A bill for each key, and the total."""

    of: dict[Key, Bill]
    total: Bill


def bills(
    store: Listings,
    key_of: Callable[[Charge], Key],
    since: str = "",
    folder: str = "",
    sessions: Collection[str] | None = None,
) -> Bills:
    """Add up the charges since a stored time, of all sessions, some sessions or a folder."""
    found = Bills({}, Bill())
    folders = store.project_of_sessions() if folder else {}
    for charge in charges(store, since, sessions):
        if folder and folders.get(charge.session) != folder:
            continue
        for bill in (found.of.setdefault(key_of(charge), Bill()), found.total):
            bill.add(charge.rate, charge.tokens, charge.messages)
    return found


@dataclass(frozen=True)
class DayCost:
    """The cost of one model in one project on one local day; None if it has no price."""

    day: str
    model: str
    project: str
    messages: int
    tokens: Tokens
    cost_usd: float | None


def newest_message(homes: Iterable[KnownHome]) -> str:
    """Return the time of the newest message of all homes; "" if there is none.

    Messages from the future do not count: the clock was set back after them.
    """
    sql = "SELECT MAX(created_at) AS newest FROM usage WHERE created_at <= :now"
    found = [""]
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            (row,) = store.rows(sql, {"now": now()[0]})
            found.append(row["newest"] or "")
    return max(found)


def costs_by_day(homes: Iterable[KnownHome], since: str = "") -> list[DayCost]:
    """Return the costs of all homes by day, model and project: newest day, then highest cost first.

    `since` is a stored time; older messages are left out.
    """
    found: list[DayCost] = []
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            prices = prices_in_force(known.home)
            added = bills(store, lambda charge: (local_day(charge.time), charge.rate.model), since)
            for (day, model), bill in added.of.items():
                cost = bill.cost(prices).rounded
                project = known.project or known.home
                found.append(DayCost(day, model, project, bill.messages, bill.tokens(), cost))
    return sorted(found, key=lambda each: (each.day, each.cost_usd or 0), reverse=True)


@dataclass(frozen=True)
class AgentCost:
    """The cost of one agent ("" outside of agents) on one model; None if it has no price."""

    agent: str
    agent_type: str
    model: str
    messages: int
    tokens: Tokens
    cost_usd: float | None


def costs_by_agent(home: str, store: Listings, session: str) -> list[AgentCost]:
    """Return the costs of a session by agent and model, highest first."""
    key_of = attrgetter("agent", "agent_type", "rate.model")
    return agent_costs(home, bills(store, key_of, sessions=[session]))


def agent_costs(home: str, added: Bills) -> list[AgentCost]:
    """Return the costs of bills by agent, type and model, highest first."""
    prices = prices_in_force(home)
    found = [
        AgentCost(agent, kind, model, bill.messages, bill.tokens(), bill.cost(prices).rounded)
        for (agent, kind, model), bill in added.of.items()
    ]
    return sorted(found, key=lambda each: each.cost_usd or 0, reverse=True)


@dataclass(frozen=True)
class GroupCost:
    """The cost of one group of messages in one project; `key` maps columns to values."""

    project: str
    key: dict[str, str]
    bill: Bill
    cost: Cost


def costs_by(
    homes: Iterable[KnownHome], group: str, since: str = "", folder: str = ""
) -> list[GroupCost]:
    """Return the costs of all homes by a group, sorted by `in_order`."""
    found: list[GroupCost] = []
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            prices = prices_in_force(known.home)
            added = bills(store, key_by(group, local_day), since, folder)
            project = folder or known.project or known.home
            for key, bill in added.of.items():
                named = dict(zip(GROUPS[group], key, strict=True))
                found.append(GroupCost(project, named, bill, bill.cost(prices)))
    return in_order(found, group)


def in_order(found: Iterable[GroupCost], group: str) -> list[GroupCost]:
    """Sort by day, newest first, or else by cost, highest first."""
    dearest = sorted(found, key=lambda each: each.cost.dollars or 0, reverse=True)
    if group == "day":
        dearest.sort(key=lambda each: each.key["day"], reverse=True)
    return dearest
