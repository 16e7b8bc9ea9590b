"""Tokens and their cost, grouped by columns such as day, model or session."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter

from hivepipe.costs.bill import Bill, Cost
from hivepipe.costs.price_table import prices_in_force
from hivepipe.costs.prices import PriceTable
from hivepipe.db.listings import Entry, Listings
from hivepipe.db.usage import Charge, charges
from hivepipe.errors import NothingRecordedError
from hivepipe.reading.homes import KnownHome
from hivepipe.skills.statistics import local_day
from hivepipe.times import now

Columns = tuple[str, ...]
Key = tuple[str, ...]

# Group -> the columns of its keys
GROUPS = {
    "day": ("day",),
    "session": ("session",),
    "model": ("model",),
    "agent": ("agent", "type", "session"),
}


def readers(day_of: Callable[[str], str]) -> dict[str, Callable[[Charge], str]]:
    """Return column -> function from a charge to the column's value; `day_of` maps time to day."""
    return {
        "day": lambda charge: day_of(charge.time),
        "session": attrgetter("session"),
        "model": attrgetter("rate.model"),
        "agent": attrgetter("agent"),
        "type": attrgetter("agent_type"),
    }


@dataclass(frozen=True)
class GroupCost:
    """The messages of one group and their cost; `key` maps the group's columns to values."""

    key: dict[str, str]
    bill: Bill
    cost: Cost

    def entry(self) -> Entry:
        """Return the cost in the form of JSON output."""
        return {
            **self.key,
            "messages": self.bill.messages,
            "tokens": self.bill.tokens()._asdict(),
            "cost_usd": self.cost.rounded,
        }


@dataclass(frozen=True)
class Bills:
    """The total bill, and one bill per key; a key is a tuple of values of `columns`."""

    columns: Columns
    of: dict[Key, Bill] = field(default_factory=dict)
    total: Bill = field(default_factory=Bill)

    def add(self, key: Key, charge: Charge) -> None:
        """Add a charge to the bill of a key and to the total."""
        for bill in (self.of.setdefault(key, Bill()), self.total):
            bill.add(charge.rate, charge.tokens, charge.messages)

    def priced(self, prices: PriceTable) -> list[GroupCost]:
        """Return each key's bill with its cost at these prices."""
        return [
            GroupCost(dict(zip(self.columns, key, strict=True)), bill, bill.cost(prices))
            for key, bill in self.of.items()
        ]


def bills(
    store: Listings,
    columns: Columns,
    day_of: Callable[[str], str] = local_day,
    *,
    since: str = "",
    folder: str = "",
    sessions: Collection[str] | None = None,
) -> Bills:
    """Return the sums of the charges since a time.

    Only the charges of `sessions` and of the project `folder` count. By default, the charges of all
    sessions and of all projects count.
    """
    found = Bills(columns)
    read = [readers(day_of)[name] for name in columns]
    folders = store.project_of_sessions() if folder else {}
    for charge in charges(store, since, sessions):
        if not folder or folders.get(charge.session) == folder:
            found.add(tuple(each(charge) for each in read), charge)
    return found


def newest_message(homes: Iterable[KnownHome]) -> str:
    """Return the time of the newest message, or "".

    A time in the future, which a wrong clock has set, is ignored.
    """
    sql = "SELECT MAX(created_at) AS newest FROM usage WHERE created_at <= :now"
    found = [""]
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            (row,) = store.rows(sql, {"now": now()[0]})
            found.append(row["newest"] or "")
    return max(found)


def costs_by(
    homes: Iterable[KnownHome], columns: Columns, since: str = "", folder: str = ""
) -> list[GroupCost]:
    """Return the costs of all homes by these columns and `project`, sorted by `in_order`.

    Homes without a database are left out. Raise StoreError if a database cannot be read, or
    PricesError if a price table cannot be read.
    """
    found: list[GroupCost] = []
    for known in homes:
        with suppress(NothingRecordedError), known.store() as store:
            project = {"project": folder or known.project or known.home}
            added = bills(store, columns, since=since, folder=folder)
            for each in added.priced(prices_in_force(known.home)):
                found.append(replace(each, key=each.key | project))
    return in_order(found)


def agent_costs(home: str, added: Bills) -> list[Entry]:
    """Return the costs by agent ("" for Claude itself), type and model; the highest comes first.

    Raise PricesError if a price table cannot be read.
    """
    return [
        {
            "agent": each.key["agent"],
            "agent_type": each.key["type"],
            "model": each.key["model"],
            "messages": each.bill.messages,
            "tokens": each.bill.tokens(),
            "cost_usd": each.cost.rounded,
        }
        for each in in_order(added.priced(prices_in_force(home)))
    ]


def in_order(found: Iterable[GroupCost]) -> list[GroupCost]:
    """Return the costs sorted by day (if any), newest first, then by cost, highest first."""
    return sorted(
        found, key=lambda each: (each.key.get("day", ""), each.cost.dollars or 0), reverse=True
    )
