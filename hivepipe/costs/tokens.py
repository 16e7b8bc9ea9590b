"""The token counts of a message, and the rate that decides its price."""

from operator import add
from typing import Any, NamedTuple

# Prompts longer than one of these sizes may have different prices.
BANDS = (100_000, 200_000)


class Tokens(NamedTuple):
    """Tokens of one message, or the sum of several; web searches are billed per search."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    web_searches: int = 0

    @classmethod
    def of(cls, row: Any) -> "Tokens":
        """Return the token counts in a row's columns, of one message or summed over several."""
        return cls(*(row[name] for name in cls._fields))

    @property
    def prompt(self) -> int:
        """Return the prompt's tokens, which decide whether the prices for long prompts apply."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def band(self) -> int:
        """Return the greatest prompt size in BANDS that this message's prompt exceeds, or 0."""
        return max((border for border in BANDS if self.prompt > border), default=0)

    def plus(self, other: "Tokens") -> "Tokens":
        return Tokens(*map(add, self, other))


class Rate(NamedTuple):
    """The values that decide the price of a token. Token counts with the same rate can be added."""

    model: str
    day: str  # UTC, such as 2026-11-21
    speed: str = ""  # "fast" or ""
    region: str = ""  # "us" for inference in the US only, or ""
    band: int = 0
