"""hivepipe's own spending on language models, for summaries in all projects, and its caps."""

from typing import Any

from hivepipe.db.spending import Amount, spending, spending_path
from hivepipe.errors import StoreError
from hivepipe.summaries.terms import caps, day_began


def own_or_problem() -> dict[str, Any]:
    """Return hivepipe's own spending as `own`, or the reason why it is unknown as `own_problem`."""
    try:
        return {"own": own_spending()}
    except StoreError as error:
        return {"own_problem": str(error)}


def own_spending() -> dict[str, dict[str, float]]:
    """Return the spending of today and in total (0 if there is no ledger), and the daily caps.

    Raise StoreError if the ledger cannot be used.
    """
    ever = today = Amount(0, 0, 0)
    if spending_path().exists():
        with spending() as ledger:
            ever, today = ledger.spent(0), ledger.spent(day_began())
    most = caps()
    return {
        "today": _entry(today.requests, today.tokens, today.dollars),
        "ever": _entry(ever.requests, ever.tokens, ever.dollars),
        "caps": _entry(most.calls, most.tokens, most.dollars),
    }


def _entry(calls: int, tokens: int, dollars: float) -> dict[str, float]:
    return {"calls": calls, "tokens": tokens, "cost_usd": dollars}
