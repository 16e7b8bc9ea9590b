"""The metadata of an archive, made from its tally."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from hivepipe.costs.bill import Bill
from hivepipe.costs.prices import PriceTable
from hivepipe.transcripts.totals import Totals

_TITLES = ("custom-title", "ai-title", "summary")  # the user's own title first


def describe(tally: Totals, prices: PriceTable, subagents: Iterable[Totals] = ()) -> dict[str, Any]:
    """Return the metadata of a transcript.

    Tokens, cost, models, skills and files include those of the subagents, except messages that they
    only replay from this transcript. Messages, tools, times and outcome are the transcript's own.
    """
    subagents = list(subagents)
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
        **_bill(tally, subagents, prices),
        "lines": tally.lines,
        "broken_lines": tally.broken_lines,
    }


def _bill(tally: Totals, subagents: Iterable[Totals], prices: PriceTable) -> dict[str, Any]:
    bill = Bill()
    sums = (each.ledger.sums(but_for=tally.ledger) for each in subagents)
    for used in (tally.ledger.sums(), *sums):
        for rate, tokens in used.items():
            bill.add(rate, tokens)
    cost = bill.cost(prices)
    return {
        "tokens": bill.tokens()._asdict(),
        "tokens_by_model": {name: each._asdict() for name, each in bill.by_model().items()},
        "cost_usd": cost.rounded,
        "models_without_price": cost.without_price,
    }


def _union(lists: Iterable[list[str]]) -> list[str]:
    """Return the names of all lists without duplicates, in the order of their first use."""
    return list(dict.fromkeys(name for names in lists for name in names))


def _seconds(first: str, last: str) -> int:
    if not first:
        return 0
    return round((datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds())
