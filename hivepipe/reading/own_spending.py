"""hivepipe's own spending on summaries by a language model in all projects, and the caps."""

from dataclasses import dataclass

from hivepipe.db.spending import Amount, spending, spending_path
from hivepipe.summaries.terms import Caps, caps, day_began


@dataclass(frozen=True)
class OwnSpending:
    """The spending of today and in total, and the daily caps."""

    today: Amount
    ever: Amount
    caps: Caps

    def entry(self) -> dict[str, dict[str, float]]:
        """Return the spending in the form of `hivepipe costs --json`."""
        return {
            "today": _entry(self.today.requests, self.today.tokens, self.today.dollars),
            "ever": _entry(self.ever.requests, self.ever.tokens, self.ever.dollars),
            "caps": _entry(self.caps.calls, self.caps.tokens, self.caps.dollars),
        }


def own_spending() -> OwnSpending:
    """Return the spending so far, which is 0 without a ledger."""
    ever = today = Amount(0, 0, 0)
    if spending_path().exists():
        with spending() as ledger:
            ever, today = ledger.spent(0), ledger.spent(day_began())
    return OwnSpending(today, ever, caps())


def _entry(calls: int, tokens: int, dollars: float) -> dict[str, float]:
    return {"calls": calls, "tokens": tokens, "cost_usd": dollars}
