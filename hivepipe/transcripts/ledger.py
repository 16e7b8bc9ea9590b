"""Which messages of a transcript have been counted, and what they used.

The last few stay open: a later line of theirs may carry a record that outweighs the one before.
The others are closed into sums by rate, and a mark of eight characters says that they were there.
"""

from _blake2 import blake2b
from base64 import b64encode
from dataclasses import dataclass, field

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.transcripts.usage import Usage, weight

OPEN_MESSAGES = 24  # lines of one message stand close together; parallel agents interleave a few
MARK_LENGTH = 8

Sums = dict[Rate, Tokens]


@dataclass(slots=True)
class OpenMessage:
    """A message whose record may still be outweighed, and the calls that were counted with it."""

    rate: Rate
    tokens: Tokens
    calls: list[str]


@dataclass(slots=True)
class Ledger:
    """The books of one transcript."""

    _open: dict[str, OpenMessage] = field(default_factory=dict)
    _sums: Sums = field(default_factory=dict)
    _seen: dict[str, None] = field(default_factory=dict)

    def has_seen(self, mark: str) -> bool:
        """Was a message or line of this mark counted?"""
        return mark in self._seen or mark in self._open

    def is_closed(self, mark: str) -> bool:
        """Was it counted, with nothing to be added any more?"""
        return mark in self._seen

    def close(self, mark: str) -> None:
        """Let nothing of this mark count again; what has no mark cannot be known again."""
        if mark:
            self._seen[mark] = None

    def enter(self, mark: str, usage: Usage | None) -> bool:
        """Enter one record of a message that is not closed; is it the message's first?"""
        rate, tokens = (usage.rate, usage.tokens) if usage else (Rate("", ""), Tokens())
        known = self._open.get(mark)
        if known is None:
            self._open[mark] = OpenMessage(rate, tokens, [])
            if len(self._open) > OPEN_MESSAGES:
                self._close_oldest()
            return True
        if weight(tokens) > weight(known.tokens):
            known.rate, known.tokens = rate, tokens
        return False

    def enter_call(self, mark: str, call: str) -> bool:
        """Enter a tool call of an open message; False: it has been entered before."""
        calls = self._open[mark].calls
        if call in calls:
            return False
        calls.append(call)
        return True

    def sums(self) -> Sums:
        """Return what all messages used, by rate."""
        total = dict(self._sums)
        for message in self._open.values():
            _add(total, message.rate, message.tokens)
        return total

    def state(self) -> list[object]:
        """Return the books as plain JSON."""
        return [
            {mark: [[*it.rate], [*it.tokens], it.calls] for mark, it in self._open.items()},
            [[[*rate], [*tokens]] for rate, tokens in self._sums.items()],
            "".join(self._seen),
        ]

    @classmethod
    def of_state(cls, state: list[object]) -> "Ledger":
        """Take the books up again."""
        still_open, sums, seen = state
        assert isinstance(still_open, dict)
        assert isinstance(sums, list)
        assert isinstance(seen, str)
        return cls(
            {
                mark: OpenMessage(Rate(*rate), Tokens(*tokens), calls)
                for mark, (rate, tokens, calls) in still_open.items()
            },
            {Rate(*rate): Tokens(*tokens) for rate, tokens in sums},
            dict.fromkeys(seen[at : at + MARK_LENGTH] for at in range(0, len(seen), MARK_LENGTH)),
        )

    def _close_oldest(self) -> None:
        mark = next(iter(self._open))
        message = self._open.pop(mark)
        self.close(mark)
        _add(self._sums, message.rate, message.tokens)


def mark_of(*names: str) -> str:
    """Return eight characters that stand for a message or a line: 48 bits."""
    digest = blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=6).digest()
    return b64encode(digest).decode()


def _add(sums: Sums, rate: Rate, tokens: Tokens) -> None:
    if any(tokens):
        sums[rate] = sums.get(rate, Tokens()).plus(tokens)
