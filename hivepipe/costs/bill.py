"""Add up the usage of many messages by rate, and compute its price."""

from dataclasses import dataclass, field
from decimal import Decimal

from hivepipe.costs.prices import PriceTable
from hivepipe.costs.tokens import Rate, Tokens


@dataclass(slots=True)
class Bill:
    """The usage of messages, summed by rate."""

    messages: int = 0
    by_rate: dict[Rate, Tokens] = field(default_factory=dict)

    def add(self, rate: Rate, tokens: Tokens, messages: int = 1) -> None:
        """Add one message, or the sum of several messages with the same rate."""
        self.messages += messages
        self.by_rate[rate] = self.by_rate.get(rate, Tokens()).plus(tokens)

    def by_model(self) -> dict[str, Tokens]:
        """Return model -> its tokens, sorted by model."""
        models: dict[str, Tokens] = {}
        for rate, tokens in sorted(self.by_rate.items()):
            models[rate.model] = models.get(rate.model, Tokens()).plus(tokens)
        return models

    def tokens(self) -> Tokens:
        total = Tokens()
        for tokens in self.by_rate.values():
            total = total.plus(tokens)
        return total

    def cost(self, prices: PriceTable) -> "Cost":
        priced = [(rate, prices.cost(rate, tokens)) for rate, tokens in self.by_rate.items()]
        amounts = [dollars for _, dollars in priced if dollars is not None]
        return Cost(
            dollars=sum(amounts, Decimal(0)) if amounts or not priced else None,
            without_price=sorted({rate.model for rate, dollars in priced if dollars is None}),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Dollars, or None if no model has a price; models `without_price` are not included."""

    dollars: Decimal | None
    without_price: list[str]

    @property
    def rounded(self) -> float | None:
        """Return the dollars as a float with six decimals, or None if they are unknown."""
        return None if self.dollars is None else float(round(self.dollars, 6))
