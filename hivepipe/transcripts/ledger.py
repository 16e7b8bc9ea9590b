"""Which messages of a transcript have been counted, and what they used.

The last few stay open: a later line of theirs may carry a record that outweighs the one before.
The others are closed into sums by rate, and a mark of eight characters says that they were there.
A subagent's messages all stay open: those that it only replays are told apart when its parent's
books lie beside.
"""

from _blake2 import blake2b
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

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
    _subagents: dict[str, OpenMessage] = field(default_factory=dict)
    _sums: Sums = field(default_factory=dict)
    _seen: dict[str, None] = field(default_factory=dict)

    def has_seen(self, mark: str) -> bool:
        """Was a message or line of this mark counted?"""
        return mark in self._seen or mark in self._open or mark in self._subagents

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
        known = self._find(mark)
        if known is None:
            place = self._subagents if usage and usage.is_sidechain else self._open
            place[mark] = OpenMessage(rate, tokens, [])
            if len(self._open) > OPEN_MESSAGES:
                self._close_oldest()
            return True
        if weight(tokens) > weight(known.tokens):
            known.rate, known.tokens = rate, tokens
        return False

    def enter_call(self, mark: str, call: str) -> bool:
        """Enter a tool call of an open message; False: it has been entered before."""
        message = self._find(mark)
        if message is None or call in message.calls:
            return False
        message.calls.append(call)
        return True

    def sums(self, but_for: "Ledger | None" = None) -> Sums:
        """Return what all messages used, by rate; of a subagent's, those of its parent left out."""
        total = dict(self._sums)
        for mark, message in (self._open | self._subagents).items():
            if but_for is None or not but_for.has_seen(mark):
                _add(total, message.rate, message.tokens)
        return total

    def state(self) -> list[Any]:
        """Return the books as plain JSON."""
        return [
            _packed(self._open),
            _packed(self._subagents),
            [[[*rate], [*tokens]] for rate, tokens in self._sums.items()],
            "".join(self._seen),
        ]

    @classmethod
    def of_state(cls, state: list[Any]) -> "Ledger":
        """Take the books up again."""
        still_open, subagents, sums, seen = state
        return cls(
            _unpacked(still_open),
            _unpacked(subagents),
            {Rate(*rate): Tokens(*tokens) for rate, tokens in sums},
            dict.fromkeys(seen[at : at + MARK_LENGTH] for at in range(0, len(seen), MARK_LENGTH)),
        )

    def _find(self, mark: str) -> OpenMessage | None:
        return self._open.get(mark) or self._subagents.get(mark)

    def _close_oldest(self) -> None:
        mark = next(iter(self._open))
        message = self._open.pop(mark)
        self.close(mark)
        _add(self._sums, message.rate, message.tokens)


def mark_of(*names: str) -> str:
    """Return eight characters that stand for a message or a line: 48 bits."""
    digest = blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=6).digest()
    return b64encode(digest).decode()


def _packed(messages: dict[str, OpenMessage]) -> dict[str, list[Any]]:
    return {mark: [[*it.rate], [*it.tokens], it.calls] for mark, it in messages.items()}


def _unpacked(state: dict[str, list[Any]]) -> dict[str, OpenMessage]:
    return {
        mark: OpenMessage(Rate(*rate), Tokens(*tokens), calls)
        for mark, (rate, tokens, calls) in state.items()
    }


def _add(sums: Sums, rate: Rate, tokens: Tokens) -> None:
    if any(tokens):
        sums[rate] = sums.get(rate, Tokens()).plus(tokens)
