"""Finds secrets in a text: first the sieves of all rules, then each suspect rule's pattern.

RE2 takes linear time for any pattern, so neither a hostile transcript nor a user's own rule can
make it hang.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import re2

from hivepipe.errors import RedactionRuleError
from hivepipe.redact.escapes import OutOfTimeError
from hivepipe.redact.randomness import looks_random
from hivepipe.redact.rule import START, WORDS, Rule

# Least entropy, in bits per byte, of a token right after a letter, digit or _. Parts of words have
# less.
_LEAST_GLUED_ENTROPY = 3.2
_GLUED = 2  # the group that matches a token right after a letter, digit or _
# Bytes before a glued token that are searched for base64, such as most of an integrity hash
_BLOB_BYTES = 96
# A short value that is not a secret is searched again, because it may be the name before a secret:
# `process.env.KEY` in `apiKey: process.env.KEY || "..."`.
_REREAD_BYTES = 256
_MOST_REMEMBERED = 1024  # values of a rule that are not secrets
_NOT_IN_BYTES = 256  # the longest match of `not_in`
AROUND_BYTES = 1 << 9  # bytes before and after a disguise that are decoded with it
_INNER_BYTES = range(0x80, 0xC0)  # bytes of a UTF-8 character after its first
MEMORY_BYTES = 64 << 20  # limit of an automaton; a pattern that needs more is rejected


class Span(NamedTuple):
    """A secret: its byte range and the number of the rule that found it."""

    start: int
    end: int
    rule: int


class Scanner:
    """A set of compiled rules."""

    def __init__(
        self,
        rules: Sequence[Rule],
        allowed: Sequence[str] = (),
        disguise: str = "",
        suspect: str = "",
    ) -> None:
        """Compile the sieves of all rules.

        A text that matches `suspect` may be disguised; in such a text, `disguise` finds the parts
        to decode.
        """
        self.rules = tuple(rules)
        self._allowed = tuple(compiled(pattern, "allow") for pattern in allowed)
        self._disguise = compiled(disguise, "disguise") if disguise else None
        sieves = [(rule.sieve, number) for number, rule in enumerate(self.rules)]
        if disguise:
            sieves.append((suspect or disguise, len(self.rules)))
        self._sieves = [_Sieve(patterns) for patterns in self._apart(sieves) if patterns]
        self._exact: list[_Exact | None] = [None] * len(self.rules)

    def suspects(
        self, text: bytes, among: Sequence[int] | None = None, may_be_disguised: bool = False
    ) -> list[int]:
        """Return the numbers of the rules whose secrets may be in the text, escaped or not.

        The number after the last rule stands for a disguise; with `may_be_disguised` it is always
        included. `among` has the suspects of a longer text that contains this text.
        """
        found: list[int] = [len(self.rules)] if may_be_disguised else []
        for sieve in self._sieves:
            if among is None or not sieve.numbers.isdisjoint(among):
                found += sieve.matching(text)
        return sorted(set(found)) if may_be_disguised else sorted(found)

    def _apart(self, sieves: Sequence[tuple[str, int]]) -> tuple[list[tuple[str, int]], ...]:
        """Return two lists of sieves.

        The first list has the sieves of token rules and of a disguise, the second all other sieves.
        A single automaton would have all combinations of the two automata's states. Building them
        takes longer than two passes over a text.
        """
        tokens: list[tuple[str, int]] = []
        names: list[tuple[str, int]] = []
        for sieve, number in sieves:
            is_token = number == len(self.rules) or self.rules[number].is_token
            (tokens if is_token else names).append((sieve, number))
        return tokens, names

    def disguised(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the ranges of a text that contain a disguise.

        A range also contains bytes before and after the disguise.
        """
        start = end = behind = 0
        while self._disguise is not None and (mark := self._disguise.search(text, behind)):
            if mark.start() - AROUND_BYTES > end:
                if end:
                    yield max(start, 0), end
                start = mark.start() - AROUND_BYTES
            # A disguise that starts before this position belongs to the same range.
            behind = mark.end() + AROUND_BYTES
            end = behind + AROUND_BYTES
        if end:
            yield max(start, 0), end

    def is_disguise(self, suspects: Sequence[int]) -> bool:
        """Tell whether numbers from the method `suspects` include the number of a disguise."""
        return bool(suspects) and suspects[-1] == len(self.rules)

    def find(self, text: bytes, suspects: Sequence[int], deadline: float = math.inf) -> list[Span]:
        """Return the secrets that the suspect rules find, in order and without overlaps.

        Raise OutOfTimeError after `deadline`, a processor time of this thread in seconds.
        """
        if time.thread_time() > deadline:
            raise OutOfTimeError
        found: list[Span] = []
        for number in suspects:
            if number < len(self.rules):
                found += self._find_one(number, text, deadline)
        return merged(found)

    def _find_one(self, number: int, text: bytes, deadline: float) -> list[Span]:
        rule = self.rules[number]
        exact = self._exact[number]
        if exact is None:
            exact = self._exact[number] = _Exact(rule)
        found = []
        at = 0
        while at <= len(text) and (match := exact.pattern.search(text, at)):
            if time.thread_time() > deadline:
                raise OutOfTimeError
            if behind := exact.end_of_exclusion(text, at, match.start()):
                at = behind
                continue
            at = max(match.end(), at + 1)
            for group in exact.groups:
                start, end = match.span(group)
                if start >= 0:
                    break
            else:
                continue
            secret = text[start:end]
            if not secret or not exact.is_secret(secret) or self._is_allowed(secret):
                if not rule.is_token and match.start() < start and len(secret) <= _REREAD_BYTES:
                    at = start
                continue
            if rule.may_be_glued and group == _GLUED and not _is_token_in_word(text, start, secret):
                continue
            found.append(Span(*_with_whole_characters(text, start, end), number))
        return found

    def _is_allowed(self, secret: bytes) -> bool:
        return any(pattern.fullmatch(secret) for pattern in self._allowed)


class _Sieve:
    """A set of patterns that are searched in one pass."""

    def __init__(self, patterns: Sequence[tuple[str, int]]) -> None:
        """Compile patterns, each with its number. Equal patterns are compiled once."""
        sharing: dict[str, list[int]] = {}
        for pattern, number in patterns:
            sharing.setdefault(pattern, []).append(number)
        self._in_order = list(sharing.values())
        self.numbers = frozenset(number for _, number in patterns)
        self._set = re2.Set.SearchSet(_options())
        for pattern in sharing:
            self._set.Add(pattern.encode("latin-1"))
        self._set.Compile()

    def matching(self, text: bytes) -> list[int]:
        """Return the numbers of the patterns that match anywhere in the text."""
        found = self._set.Match(text)
        return [number for index in found for number in self._in_order[index]] if found else []


class _Exact:
    """The exact pattern of one rule, compiled at its first use."""

    def __init__(self, rule: Rule) -> None:
        form = rule.pattern
        pattern = f"{START}({form})" if rule.is_token else form
        if rule.may_be_glued:
            pattern += f"|[0-9A-Za-z_]({form})"
        self.pattern = compiled(pattern, rule.name)
        # The secret is the first group that took part in the match.
        self.groups = range(1, self.pattern.groups + 1) if self.pattern.groups else (0,)
        self._unless = compiled(rule.unless, rule.name) if rule.unless else None
        self._not_in = compiled(rule.not_in, rule.name) if rule.not_in else None
        self._least_entropy = rule.least_entropy
        self._must_look_random = rule.must_look_random
        self._rejected: set[bytes] = set()

    def end_of_exclusion(self, text: bytes, at: int, start: int) -> int:
        """Return the end of the `not_in` match that contains `start`, or 0 without such a match.

        The text before `at` is not searched.
        """
        at, end = max(at, start - _NOT_IN_BYTES), start + _NOT_IN_BYTES
        while self._not_in and (found := self._not_in.search(text, at, end)):
            if found.end() > start:
                return found.end() if found.start() <= start else 0
            at = found.start() + 1
        return 0

    def is_secret(self, text: bytes) -> bool:
        """Tell whether a value is a secret. Rejected values are cached, because they recur."""
        if text in self._rejected:
            return False
        is_secret = self._is_secret(text)
        if not is_secret and len(text) <= _REREAD_BYTES and len(self._rejected) < _MOST_REMEMBERED:
            self._rejected.add(text)
        return is_secret

    def _is_secret(self, text: bytes) -> bool:
        """Tell whether a value is random enough and not an exception of the rule."""
        if self._unless is not None and self._unless.fullmatch(text):
            return False
        if self._must_look_random and not looks_random(text):
            return False
        return not self._least_entropy or entropy(text) >= self._least_entropy


def _is_token_in_word(text: bytes, start: int, token: bytes) -> bool:
    """Tell whether a match inside a word is a token.

    A token is random. It is not made of words, and is not a part of base64.
    """
    is_blob = _BLOB.search(text[max(0, start - _BLOB_BYTES) : start]) is not None
    return not is_blob and entropy(token) >= _LEAST_GLUED_ENTROPY and not _WORDS.fullmatch(token)


def _with_whole_characters(text: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a range so that it does not split a UTF-8 character: patterns match bytes."""
    first, last = max(start - 3, 0), min(end + 3, len(text))
    while start > first and text[start] in _INNER_BYTES:
        start -= 1
    while end < last and text[end] in _INNER_BYTES:
        end += 1
    return start, end


def merged(spans: list[Span]) -> list[Span]:
    """Return the spans, with overlapping ones joined under the lowest of their rule numbers."""
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
    """Compile a pattern for bytes. Raise RedactionRuleError with `name` if it is invalid."""
    try:
        return re2.compile(pattern.encode("latin-1"), _options())
    except (re2.error, UnicodeEncodeError) as error:
        raise RedactionRuleError(f"rule {name!r}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    message = error.args[0] if error.args else error
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MEMORY_BYTES
    options.log_errors = False
    return options


_WORDS = compiled(WORDS, "words")
_BLOB = compiled("(?:[A-Za-z0-9+/]{24}|(?:h1:|sha[0-9]{1,3}[-:=])[A-Za-z0-9+/]*)$", "blob")
