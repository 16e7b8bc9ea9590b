"""Find secrets in a text: a sieve over all rules at once, then the rules it names, one by one.

RE2 because it is linear in the text, whatever the pattern: neither a hostile transcript nor a
user's own rule can make it hang.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import re2

from hivepipe.errors import RedactionRuleError
from hivepipe.redaction.escapes import OutOfTimeError
from hivepipe.redaction.rule import Rule

MEMORY_BYTES = 64 << 20  # for one automaton; a pattern that needs more is refused


class Span(NamedTuple):
    """A secret: where it starts and ends (byte offsets), and the rule that found it."""

    start: int
    end: int
    rule: int


class Scanner:
    """The rules, compiled."""

    def __init__(
        self, rules: Sequence[Rule], allowed: Sequence[str] = (), disguise: str = ""
    ) -> None:
        """Compile the sieve; RedactionRuleError names the rule that cannot be compiled.

        A text that holds `disguise` is suspect, whatever else it holds.
        """
        self.rules = tuple(rules)
        self._allowed = tuple(compiled(pattern, "allow") for pattern in allowed)
        self._sieve = re2.Set.SearchSet(_options())
        for rule in self.rules:
            compiled(rule.sieve, rule.name)
            self._sieve.Add(rule.sieve.encode("latin-1"))
        self._disguise = compiled(disguise, "disguise") if disguise else None
        if disguise:
            self._sieve.Add(disguise.encode("latin-1"))
        self._sieve.Compile()
        self._exact: list[_Exact | None] = [None] * len(self.rules)

    def suspects(self, text: bytes) -> list[int]:
        """Return the rules whose secrets the text may hold, however it spells them."""
        found: list[int] | None = self._sieve.Match(text)
        return found or []

    def is_disguised(self, text: bytes) -> bool:
        """Does the text hold what the scanner was told to look behind?"""
        return self._disguise is not None and self._disguise.search(text) is not None

    def find(self, text: bytes, deadline: float = math.inf) -> list[Span]:
        """Return the secrets in order, none overlapping.

        OutOfTimeError once this thread has used more processor time than the deadline says.
        """
        if time.thread_time() > deadline:
            raise OutOfTimeError
        found: list[Span] = []
        for number in self.suspects(text):
            if number < len(self.rules):
                found += self._find_one(number, text, deadline)
        return merged(found)

    def _find_one(self, number: int, text: bytes, deadline: float) -> list[Span]:
        exact = self._exact[number]
        if exact is None:
            exact = self._exact[number] = _Exact(self.rules[number])
        found = []
        for match in exact.pattern.finditer(text):
            if time.thread_time() > deadline:
                raise OutOfTimeError
            start, end = _secret(match, exact.groups)
            secret = text[start:end]
            if secret and exact.is_secret(secret) and not self._is_allowed(secret):
                found.append(Span(start, end, number))
        return found

    def _is_allowed(self, secret: bytes) -> bool:
        return any(pattern.fullmatch(secret) for pattern in self._allowed)


class _Exact:
    """One rule, compiled when it is needed for the first time."""

    def __init__(self, rule: Rule) -> None:
        self.pattern = compiled(rule.pattern, rule.name)
        self.groups = self.pattern.groups
        self._unless = compiled(rule.unless, rule.name) if rule.unless else None
        self._least_entropy = rule.least_entropy

    def is_secret(self, text: bytes) -> bool:
        """Is it none of the rule's exceptions, and random enough?"""
        if self._unless is not None and self._unless.fullmatch(text):
            return False
        return not self._least_entropy or entropy(text) >= self._least_entropy


def _secret(match: "re2._Match", groups: int) -> tuple[int, int]:
    """Return where the secret stands in a match; an empty range if the rule passes it over."""
    for group in range(1, groups + 1) if groups else (0,):
        start, end = match.span(group)
        if start >= 0:
            return start, end
    return 0, 0


def merged(spans: list[Span]) -> list[Span]:
    """Join spans that overlap; the earlier rule gives the name."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Span(last.start, max(last.end, span.end), min(last.rule, span.rule))
        else:
            joined.append(span)
    return joined


def entropy(text: bytes) -> float:
    """Return Shannon's entropy in bits per byte."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def compiled(pattern: str, name: str) -> "re2._Regexp":
    """Compile a pattern for bytes; RedactionRuleError names the rule."""
    try:
        return re2.compile(pattern.encode("latin-1"), _options())
    except (re2.error, UnicodeEncodeError) as error:
        raise RedactionRuleError(f"rule {name!r}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MEMORY_BYTES
    options.log_errors = False
    return options
