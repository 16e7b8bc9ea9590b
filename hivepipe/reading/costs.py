"""Tokens and their cost, added up by a key of the charges."""

from collections.abc import Callable
from dataclasses import dataclass

from hivepipe.costs.bill import Bill
from hivepipe.db.listings import Listings
from hivepipe.db.usage import Charge, charges

Key = tuple[str, ...]


@dataclass(frozen=True)
class Bills:
    """A bill for each key, and one over all."""

    of: dict[Key, Bill]
    total: Bill


def bills(store: Listings, key_of: Callable[[Charge], Key], since: str = "") -> Bills:
    """Add up the charges since a stored time."""
    found = Bills({}, Bill())
    for charge in charges(store, since):
        for bill in (found.of.setdefault(key_of(charge), Bill()), found.total):
            bill.add(charge.rate, charge.tokens, charge.messages)
    return found
