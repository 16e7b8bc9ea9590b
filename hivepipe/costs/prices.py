"""The price table: read from TOML, and used to compute dollars.

A row has names of models and prices per million tokens. A row may have a first day (`from`), a
prompt length above which it applies (`above`), and factors for fast mode and for inference in one
region. A separate table of factors applies to all rows of its models. Of the rows of a model, those
with the newest day apply. If several rows have this day, the one with the greatest `above` that the
prompt exceeds applies. A model without a row has no price. The price of a similar release is never
used.
"""

import datetime
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeVar

from hivepipe.costs.tokens import BANDS, Rate, Tokens
from hivepipe.errors import PricesError

T = TypeVar("T")
MILLION = Decimal(1_000_000)
_COUNTS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
_FACTORS = ("fast", "us")
_ROW_KEYS = {"models", "from", "above", *_COUNTS, *_FACTORS}
_KEYS = {"date", "source", "web_search", "price", "factor"}

# `us.anthropic.claude-opus-5-v1:0`, `claude-opus-4-5@20251101`, `claude-opus-5[1m]`
_NAME = re.compile(r"claude-[a-z0-9.-]+")
_SUFFIX = re.compile(r"(?:-v\d+|[-@]20\d{6})+$")


@dataclass(frozen=True)
class Price:
    """One row of the price table: dollars per million tokens."""

    per_million: tuple[Decimal, ...]  # prices in the order of _COUNTS
    since: str = ""
    above: int = 0
    factors: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True)
class PriceTable:
    """Prices by model, with the date and source of the table."""

    date: str
    source: str
    web_search: Decimal | None
    models: Mapping[str, tuple[Price, ...]]
    factors: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)

    def cost(self, rate: Rate, tokens: Tokens) -> Decimal | None:
        """Return the cost in dollars of messages with one rate, or None if it has no price."""
        price = self._price(rate)
        if price is None:
            return None
        if rate.speed and rate.speed not in price.factors:
            return None
        # A model without a premium for a region costs the same there.
        factor = price.factors.get(rate.speed, 1) * price.factors.get(rate.region, Decimal(1))
        counts = zip(tokens[: len(_COUNTS)], price.per_million, strict=True)
        dollars = factor * sum(count * each for count, each in counts) / MILLION
        if not tokens.web_searches:
            return dollars
        return None if self.web_search is None else dollars + tokens.web_searches * self.web_search

    def with_overrides(self, other: "PriceTable") -> "PriceTable":
        """Return this table, with the rows of `other` for every model that `other` contains.

        The factors of `other` apply to all rows of their models.
        """
        models = {**self.models, **other.models}
        for name in other.factors.keys() & models:
            more = other.factors[name]
            models[name] = tuple(
                replace(row, factors={**row.factors, **more}) for row in models[name]
            )
        return PriceTable(
            date=max(self.date, other.date),
            source=other.source or self.source,
            web_search=self.web_search if other.web_search is None else other.web_search,
            models=models,
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
    """Return the price table in a text, or raise PricesError."""
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PricesError(f"not valid TOML: {error}") from error
    _refuse_unknown(content, _KEYS)
    models: dict[str, tuple[Price, ...]] = {}
    for names, price in _tables(content, "price", _row):
        for name in names:
            models[name] = (*models.get(name, ()), price)
    of_models = _tables(content, "factor", _factor)
    return PriceTable(
        date=str(content.get("date", "")),
        source=str(content.get("source", "")),
        web_search=_amount(content, "web_search") if "web_search" in content else None,
        models=models,
        factors={name: factors for names, factors in of_models for name in names},
    )


def _tables(
    content: Mapping[str, Any], key: str, read: Callable[[Mapping[str, Any]], T]
) -> list[tuple[list[str], T]]:
    """Return model names and parsed value of each TOML table in the list of tables `key`.

    Raise PricesError, with the number of the table, if one is invalid.
    """
    rows = content.get(key, [])
    if not isinstance(rows, list):
        raise PricesError(f"`{key}` is not a list of tables: write [[{key}]]")
    found = []
    for number, row in enumerate(rows, 1):
        try:
            if not isinstance(row, dict):
                raise PricesError("not a table")
            found.append((_names(row), read(row)))
        except PricesError as error:
            raise PricesError(f"row {number}: {error}") from error
    return found


def _names(row: Mapping[str, Any]) -> list[str]:
    names = row.get("models")
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise PricesError("`models` is not a list of names")
    return [plain_name(name) for name in names]


def _factor(row: Mapping[str, Any]) -> dict[str, Decimal]:
    _refuse_unknown(row, {"models", *_FACTORS})
    return {name: _amount(row, name) for name in _FACTORS if name in row}


def _row(row: Mapping[str, Any]) -> Price:
    _refuse_unknown(row, _ROW_KEYS)
    since = row.get("from", "")
    if since and type(since) is not datetime.date:
        raise PricesError("`from` is not a date, such as 2026-11-21")
    above = row.get("above", 0)
    if above not in (0, *BANDS):
        raise PricesError(f"`above` is not one of {', '.join(map(str, BANDS))}")
    return Price(
        per_million=tuple(_amount(row, name) for name in _COUNTS),
        since=str(since),
        above=above,
        factors={name: _amount(row, name) for name in _FACTORS if name in row},
    )


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
