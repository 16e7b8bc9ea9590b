"""The cost of a call, and the daily caps for all projects of the user together."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from hivepipe.costs.prices import PriceTable
from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.settings import DEFAULTS, variable
from hivepipe.summaries.providers import Offer
from hivepipe.summaries.question import ANSWER_TOKENS, Question

FORM_TOKENS = 700  # tokens of the schema and of the protocol
_ASSUMED = "claude-opus-5"  # Claude Code uses the prices of this model for unknown ones (2.1.197)
_USUAL_BYTES_PER_TOKEN = 4
_USUAL_ANSWER_TOKENS = 400


class Caps(NamedTuple):
    calls: int
    tokens: int
    dollars: float


def caps() -> Caps:
    """Return the daily caps in force; a cap that is not a number is 0."""
    return Caps(
        int(_cap(variable("HIVEPIPE_LLM_DAILY_CALLS"), "HIVEPIPE_LLM_DAILY_CALLS")),
        int(_cap(variable("HIVEPIPE_LLM_DAILY_TOKENS"), "HIVEPIPE_LLM_DAILY_TOKENS")),
        _cap(variable("HIVEPIPE_LLM_DAILY_USD"), "HIVEPIPE_LLM_DAILY_USD"),
    )


def trouble() -> str:
    """Return an error if a cap is not a number, else ""; with an error, no model is called."""
    for name, text in (
        ("llm_daily_calls", variable("HIVEPIPE_LLM_DAILY_CALLS")),
        ("llm_daily_tokens", variable("HIVEPIPE_LLM_DAILY_TOKENS")),
        ("llm_daily_usd", variable("HIVEPIPE_LLM_DAILY_USD")),
    ):
        if text and _number(text) is None:
            return f"{name} is not a number: `hivepipe config`"
    return ""


def timeout_secs() -> float:
    secs = _number(variable("HIVEPIPE_LLM_TIMEOUT") or "")
    return secs or float(DEFAULTS["HIVEPIPE_LLM_TIMEOUT"])


def _cap(text: str | None, name: str) -> float:
    return _number(text or DEFAULTS[name]) or 0.0


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def price(offer: Offer, prices: PriceTable, tokens: Tokens) -> Decimal | None:
    """Return the cost of tokens, or None without a price; an unpriced local model costs 0."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    cost = prices.cost(Rate(offer.model, today, band=tokens.band), tokens)
    return Decimal(0) if cost is None and offer.is_local else cost


def budget_usd(offer: Offer, prices: PriceTable, question: Question) -> float:
    """Return the budget of one request in dollars, for a client that limits its own cost.

    Claude Code stops at its own estimate of the cost, which is not billed. For an unknown model,
    Claude Code assumes the prices of another model. So the budget is the higher cost of the two
    models.
    """
    tokens = most_tokens(question)
    models = (
        (offer, replace(offer, model=_ASSUMED)) if offer.provider.kind == "claude" else (offer,)
    )
    return float(max(price(each, prices, tokens) or 0 for each in models))


def most_tokens(question: Question) -> Tokens:
    """Return the maximum usage of one request.

    A token has at least one byte. A request for a correction also contains the first answer.
    """
    return Tokens(question.size_bytes + FORM_TOKENS + ANSWER_TOKENS, ANSWER_TOKENS)


def usual_tokens(size_bytes: int) -> Tokens:
    """Return the usual usage of one request of this size."""
    return Tokens(size_bytes // _USUAL_BYTES_PER_TOKEN + FORM_TOKENS, _USUAL_ANSWER_TOKENS)


def day_began() -> float:
    """Return the start of the user's day, in seconds since 1970."""
    year, month, day, *_ = time.localtime()
    return time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))
