"""The price table: TOML in, dollars out.

A row names its models, prices per million tokens, and may name the day from which it holds
(`from`), the length of the prompt beyond which it holds (`above`), and factors for fast mode and
for inference in one region. Of a model's rows those of the newest day decide, and of these the
one with the greatest `above` that the prompt exceeds. A release of a model never takes the price
of its neighbour: what has no row has no price.
"""

import datetime
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hivepipe.costs.tokens import BANDS, Rate, Tokens
from hivepipe.errors import PricesError

MILLION = Decimal(1_000_000)
_COUNTS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
_FACTORS = ("fast", "us")
_ROW_KEYS = {"models", "from", "above", *_COUNTS, *_FACTORS}
_KEYS = {"date", "source", "web_search", "price"}

# `us.anthropic.claude-opus-5-v1:0`, `claude-opus-4-5@20251101`, `claude-opus-5[1m]`
_NAME = re.compile(r"claude-[a-z0-9.-]+")
_SUFFIX = re.compile(r"(?:-v\d+|[-@]20\d{6})+$")


@dataclass(frozen=True)
class Price:
    """One row: dollars per million tokens."""

    per_million: tuple[Decimal, ...]  # in the order of _COUNTS
    since: str = ""
    above: int = 0
    factors: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True)
class PriceTable:
    """Prices by model, with the day they were looked up and where."""

    date: str
    source: str
    web_search: Decimal | None
    models: Mapping[str, tuple[Price, ...]]

    def cost(self, rate: Rate, tokens: Tokens) -> Decimal | None:
        """Return what messages of one rate cost in dollars; None: there is no price for them."""
        price = self._price(rate)
        if price is None:
            return None
        if rate.speed and rate.speed not in price.factors:
            return None
        # Where a model has no premium for a region, that region costs no more.
        factor = price.factors.get(rate.speed, 1) * price.factors.get(rate.region, Decimal(1))
        counts = zip(tokens[: len(_COUNTS)], price.per_million, strict=True)
        dollars = factor * sum(count * each for count, each in counts) / MILLION
        if not tokens.web_searches:
            return dollars
        return None if self.web_search is None else dollars + tokens.web_searches * self.web_search

    def with_overrides(self, other: "PriceTable") -> "PriceTable":
        """Return this table, each model that the other one names being priced by that alone."""
        return PriceTable(
            date=max(self.date, other.date),
            source=other.source or self.source,
            web_search=self.web_search if other.web_search is None else other.web_search,
            models={**self.models, **other.models},
        )

    def _price(self, rate: Rate) -> Price | None:
        rows = [row for row in self.models.get(plain_name(rate.model), ()) if row.since <= rate.day]
        newest = max((row.since for row in rows), default="")
        rows = [row for row in rows if row.since == newest and row.above <= rate.band]
        return max(rows, key=lambda row: row.above, default=None)


def plain_name(model: str) -> str:
    """Return a model's name without provider, date, version and context size."""
    found = _NAME.search(model.lower())
    if not found:
        return model
    return _SUFFIX.sub("", found[0].replace(".", "-").rstrip("-"))


def read_prices(text: str) -> PriceTable:
    """Read a price table; PricesError says what is wrong with it."""
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PricesError(f"not valid TOML: {error}") from error
    _refuse_unknown(content, _KEYS)
    models: dict[str, tuple[Price, ...]] = {}
    rows = content.get("price", [])
    if not isinstance(rows, list):
        raise PricesError("`price` is not a list of tables: write [[price]]")
    for number, row in enumerate(rows, 1):
        try:
            names, price = _row(row)
        except PricesError as error:
            raise PricesError(f"row {number}: {error}") from error
        for name in names:
            models[name] = (*models.get(name, ()), price)
    return PriceTable(
        date=str(content.get("date", "")),
        source=str(content.get("source", "")),
        web_search=_amount(content, "web_search") if "web_search" in content else None,
        models=models,
    )


def _row(row: object) -> tuple[list[str], Price]:
    if not isinstance(row, dict):
        raise PricesError("not a table")
    _refuse_unknown(row, _ROW_KEYS)
    names = row.get("models")
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise PricesError("`models` is not a list of names")
    since = row.get("from", "")
    if since and type(since) is not datetime.date:
        raise PricesError("`from` is not a date, such as 2026-11-21")
    above = row.get("above", 0)
    if above not in (0, *BANDS):
        raise PricesError(f"`above` is none of {', '.join(map(str, BANDS))}")
    price = Price(
        per_million=tuple(_amount(row, name) for name in _COUNTS),
        since=str(since),
        above=above,
        factors={name: _amount(row, name) for name in _FACTORS if name in row},
    )
    return [plain_name(name) for name in names], price


def _refuse_unknown(table: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise PricesError(f"unknown key {unknown[0]!r}")


def _amount(row: Mapping[str, Any], key: str) -> Decimal:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise PricesError(f"`{key}` is not a number")
    amount = Decimal(value)
    if not (amount.is_finite() and amount >= 0):
        raise PricesError(f"`{key}` is not a price")
    return amount
