"""Write hivepipe/costs/genai_prices.toml: the prices of Claude models by genai-prices, as rows.

    python .ci/prices.py           write the file
    python .ci/prices.py --print   print it

It reads the data of the installed genai-prices, and fetches nothing.
"""

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hivepipe.costs.prices import plain_name, read_prices

FILE = Path(__file__).resolve().parent.parent / "hivepipe" / "costs" / "genai_prices.toml"
FIELDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
}
HEAD = """\
# Prices of Claude models in US dollars per million tokens, by genai-prices {version}.
# `make prices` writes this file; corrections are in prices.toml.

source = "genai-prices {version}"
"""


def table() -> str:
    """Return the table as TOML. Raise PricesError for a price that our rows cannot express."""
    from genai_prices.data import providers  # noqa: PLC0415  takes 25 MB, and only this needs it

    (anthropic,) = (one for one in providers if one.id == "anthropic")
    rows = [row for model in anthropic.models for row in _rows(model)]
    text = HEAD.format(version=version("genai-prices")) + "".join(rows)
    read_prices(text)
    return text


def _rows(model: Any) -> Iterator[str]:
    """Yield the rows of a model: one for each start date and each prompt length."""
    names = ", ".join(f'"{name}"' for name in _names(model))
    dated = model.prices if isinstance(model.prices, list) else [None]
    for one in dated:
        prices = one.prices if one else model.prices
        amounts = [getattr(prices, field) for field in FIELDS.values()]
        if None in amounts:
            return  # a price from before prompt caches
        since = f"from = {one.constraint.start_date}\n" if one and one.constraint else ""
        for start in sorted({0, *_starts(amounts)}):
            above = f"above = {start:_}\n" if start else ""
            counts = zip(FIELDS, amounts, strict=True)
            lines = "".join(f"{name} = {_from(amount, start)}\n" for name, amount in counts)
            yield f"\n[[price]]\nmodels = [{names}]\n{since}{above}{lines}"


def _names(model: Any) -> list[str]:
    """Return the full names of a release: a prefix could match another release, too."""
    clauses = getattr(model.match, "or_", [model.match])
    found = [getattr(one, "equals", None) or getattr(one, "starts_with", "") for one in clauses]
    plain = {plain_name(name.removesuffix("-latest")) for name in (model.id, *found)}
    return sorted(name for name in plain if name.startswith("claude-") and "-20" not in name)


def _starts(amounts: Iterable[Any]) -> set[int]:
    return {tier.start for amount in amounts for tier in getattr(amount, "tiers", ())}


def _from(amount: Any, start: int) -> Any:
    """Return the price of tokens in a prompt of more than `start` tokens."""
    tiers = getattr(amount, "tiers", ())
    reached = [tier for tier in tiers if tier.start <= start]
    return max(reached, key=lambda tier: tier.start).price if reached else _base(amount)


def _base(amount: Any) -> Any:
    return getattr(amount, "base", amount)


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        print(table(), end="")
    else:
        FILE.write_text(table())
