"""Many messages on one bill: counts by rate, priced when it is asked for."""

from dataclasses import dataclass, field
from decimal import Decimal

from hivepipe.costs.prices import PriceTable
from hivepipe.costs.tokens import Rate, Tokens


@dataclass(slots=True)
class Bill:
    """What was used, message by message or sum by sum."""

    messages: int = 0
    by_rate: dict[Rate, Tokens] = field(default_factory=dict)

    def add(self, rate: Rate, tokens: Tokens, messages: int = 1) -> None:
        """Put one message on the bill, or the sum of some of one rate."""
        self.messages += messages
        self.by_rate[rate] = self.by_rate.get(rate, Tokens()).plus(tokens)

    def by_model(self) -> dict[str, Tokens]:
        """Return the counts of each model, in the order of their names."""
        models: dict[str, Tokens] = {}
        for rate, tokens in sorted(self.by_rate.items()):
            models[rate.model] = models.get(rate.model, Tokens()).plus(tokens)
        return models

    def tokens(self) -> Tokens:
        """Return the counts of all messages."""
        total = Tokens()
        for tokens in self.by_rate.values():
            total = total.plus(tokens)
        return total

    def cost(self, prices: PriceTable) -> "Cost":
        """Return what it comes to."""
        priced = [(rate, prices.cost(rate, tokens)) for rate, tokens in self.by_rate.items()]
        amounts = [dollars for _, dollars in priced if dollars is not None]
        return Cost(
            dollars=sum(amounts, Decimal(0)) if amounts or not priced else None,
            without_price=sorted({rate.model for rate, dollars in priced if dollars is None}),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Dollars, and the models whose tokens are not in them; None: nothing has a price."""

    dollars: Decimal | None
    without_price: list[str]

    @property
    def rounded(self) -> float | None:
        """To a millionth of a dollar, as JSON takes it."""
        return None if self.dollars is None else float(round(self.dollars, 6))
