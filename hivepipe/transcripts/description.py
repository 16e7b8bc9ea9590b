"""A tally as people and other programs read it: the keys of an archive's metadata."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from hivepipe.costs.prices import PriceTable
from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.transcripts.tally import Tally

_TITLES = ("custom-title", "ai-title", "summary")  # the user's own word first


def describe(tally: Tally, prices: PriceTable, subagents: Iterable[Tally] = ()) -> dict[str, Any]:
    """Return the metadata of a transcript.

    Tokens, cost, models, skills and files include those of the subagents; messages, tools, times
    and outcome are the transcript's own.
    """
    family = (tally, *subagents)
    titles = (tally.titles.get(kind, "") for kind in _TITLES)
    return {
        "session_id": tally.session,
        "title": next(filter(None, titles), ""),
        "cwd": tally.cwd,
        "git_branch": tally.git_branch,
        "claude_version": tally.claude_version,
        "started_at": tally.first,
        "ended_at": tally.last,
        "duration_seconds": _seconds(tally.first, tally.last),
        "outcome": tally.outcome,
        "message_count": tally.messages,
        "compactions": tally.compactions,
        "compact_summary": tally.compact_summary,
        "tools": {
            name: {"calls": calls, "ok": ok, "failed": failed}
            for name, (calls, ok, failed) in tally.tools.items()
        },
        "skills_used": _union(it.skills for it in family),
        "files_modified": _union(it.files for it in family),
        "deliverables": {"message": tally.answer, "files": list(tally.files)},
        "models": _union(it.models for it in family),
        **_bill(family, prices),
        "lines": tally.lines,
        "broken_lines": tally.broken_lines,
    }


def _bill(family: Iterable[Tally], prices: PriceTable) -> dict[str, Any]:
    by_rate: dict[Rate, Tokens] = {}
    for tally in family:
        for rate, tokens in tally.ledger.sums().items():
            by_rate[rate] = by_rate.get(rate, Tokens()).plus(tokens)
    by_model: dict[str, Tokens] = {}
    cost = Decimal(0)
    without_price = set()
    for rate, tokens in by_rate.items():
        by_model[rate.model] = by_model.get(rate.model, Tokens()).plus(tokens)
        dollars = prices.cost(rate, tokens)
        if dollars is None:
            without_price.add(rate.model)
        else:
            cost += dollars
    total = Tokens()
    for tokens in by_model.values():
        total = total.plus(tokens)
    nothing_priced = bool(by_model) and without_price == set(by_model)
    return {
        "tokens": total._asdict(),
        "tokens_by_model": {name: by_model[name]._asdict() for name in sorted(by_model)},
        "cost_usd": None if nothing_priced else float(round(cost, 6)),
        "models_without_price": sorted(without_price),
    }


def _union(lists: Iterable[list[str]]) -> list[str]:
    """Return the names of all lists, each once, in the order of their first use."""
    return list(dict.fromkeys(name for names in lists for name in names))


def _seconds(first: str, last: str) -> int:
    if not first:
        return 0
    return round((datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds())
