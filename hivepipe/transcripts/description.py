"""The metadata of an archive, computed from its totals."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from hivepipe.costs.bill import Bill
from hivepipe.costs.prices import PriceTable
from hivepipe.transcripts.totals import Totals

_TITLES = ("custom-title", "ai-title", "summary")  # the user's own title first


def describe(
    totals: Totals, prices: PriceTable, subagents: Iterable[Totals] = ()
) -> dict[str, Any]:
    """Return the metadata of an archived transcript.

    Tokens, cost, models, skills and files include the subagents. Messages that a subagent only
    replays from this transcript do not count. Messages, tools, times and outcome come from the
    transcript alone.
    """
    subagents = list(subagents)
    family = (totals, *subagents)
    titles = (totals.titles.get(kind, "") for kind in _TITLES)
    return {
        "session_id": totals.session,
        "title": next(filter(None, titles), ""),
        "cwd": totals.cwd,
        "git_branch": totals.git_branch,
        "claude_version": totals.claude_version,
        "started_at": totals.first,
        "ended_at": totals.last,
        "duration_seconds": _seconds(totals.first, totals.last),
        "outcome": totals.outcome,
        "message_count": totals.messages,
        "compactions": totals.compactions,
        "compact_summary": totals.compact_summary,
        "tools": {
            name: {"calls": calls, "ok": ok, "failed": failed}
            for name, (calls, ok, failed) in totals.tools.items()
        },
        "skills_used": _union(it.skills for it in family),
        "files_modified": _union(it.files for it in family),
        "deliverables": {"message": totals.answer, "files": list(totals.files)},
        "models": _union(it.models for it in family),
        **_bill(totals, subagents, prices),
        "lines": totals.lines,
        "broken_lines": totals.broken_lines,
    }


def _bill(totals: Totals, subagents: Iterable[Totals], prices: PriceTable) -> dict[str, Any]:
    bill = Bill()
    sums = (each.message_counts.sums(but_for=totals.message_counts) for each in subagents)
    for used in (totals.message_counts.sums(), *sums):
        for rate, tokens in used.items():
            bill.add(rate, tokens)
    cost = bill.cost(prices)
    return {
        "tokens": bill.tokens()._asdict(),
        "tokens_by_model": {name: each._asdict() for name, each in bill.by_model().items()},
        "cost_usd": cost.rounded,
        "models_without_price": cost.without_price,
    }


def _union(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return the names in all lists without duplicates, in the order of their first use."""
    return list(dict.fromkeys(name for names in lists for name in names))


def _seconds(first: str, last: str) -> int:
    if not first:
        return 0
    return round((datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds())
