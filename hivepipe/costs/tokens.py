"""The counts a message is billed by."""

from typing import NamedTuple

# A prompt longer than one of these may have prices of its own.
BANDS = (100_000, 200_000)


class Tokens(NamedTuple):
    """Tokens of one message, or of many together; web searches are billed apiece."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    web_searches: int = 0

    @property
    def prompt(self) -> int:
        """All that was sent: what decides on the prices of long prompts."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def band(self) -> int:
        """The greatest border that one message's prompt exceeds; 0 if none."""
        return max((border for border in BANDS if self.prompt > border), default=0)

    def plus(self, other: "Tokens") -> "Tokens":
        """Add, count by count."""
        return Tokens(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Rate(NamedTuple):
    """What, beside the counts, decides on the price: messages of one rate can be added up."""

    model: str
    day: str  # UTC, as 2026-11-21
    speed: str = ""  # "fast", or empty
    region: str = ""  # "us" for inference in the US alone, or empty
    band: int = 0
