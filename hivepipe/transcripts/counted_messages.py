"""The counted messages of a transcript, and their usage.

The last messages stay open, because a later line of a message may have a higher usage record. Older
messages are closed: they are added to sums by price rate, and a mark of eight characters records
that they were counted. All messages of a subagent stay open. A comparison with the parent's counts
shows which of these messages are only replayed.
"""

from _blake2 import blake2b
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.transcripts.usage import Usage, weight

OPEN_MESSAGES = 24  # lines of one message are close together; parallel agents interleave a few
MARK_LENGTH = 8

Sums = dict[Rate, Tokens]


@dataclass(slots=True)
class OpenMessage:
    """A message whose usage may still change, and the tool calls that were counted with it."""

    rate: Rate
    tokens: Tokens
    calls: dict[str, None]


@dataclass(slots=True)
class MessageCounts:
    _open: dict[str, OpenMessage] = field(default_factory=dict)
    _subagents: dict[str, OpenMessage] = field(default_factory=dict)
    _sums: Sums = field(default_factory=dict)
    _seen: dict[str, None] = field(default_factory=dict)

    def has_seen(self, mark: str) -> bool:
        """Tell whether a message or line with this mark was counted."""
        return mark in self._seen or mark in self._open or mark in self._subagents

    def is_closed(self, mark: str) -> bool:
        """Tell whether the message or line with this mark was counted and can no longer change."""
        return mark in self._seen

    def close(self, mark: str) -> None:
        """Close the message or line with this mark, so that it is not counted again; ignore ""."""
        if mark:
            self._seen[mark] = None

    def enter(self, mark: str, usage: Usage | None) -> bool:
        """Count a usage record of an open message; return True for the message's first record."""
        rate, tokens = (usage.rate, usage.tokens) if usage else (Rate("", ""), Tokens())
        known = self._find(mark)
        if known is None:
            place = self._subagents if usage and usage.is_sidechain else self._open
            place[mark] = OpenMessage(rate, tokens, {})
            if len(self._open) > OPEN_MESSAGES:
                self._close_oldest()
            return True
        if weight(tokens) > weight(known.tokens):
            known.rate, known.tokens = rate, tokens
        return False

    def enter_call(self, mark: str, call: str) -> bool:
        """Count a tool call of an open message.

        Return False if the call was counted before, or the message is not open.
        """
        message = self._find(mark)
        if message is None or call in message.calls:
            return False
        message.calls[call] = None
        return True

    def sums(self, but_for: "MessageCounts | None" = None) -> Sums:
        """Return the usage by price rate of all messages except those counted in `but_for`."""
        total = dict(self._sums)
        for mark, message in (self._open | self._subagents).items():
            if but_for is None or not but_for.has_seen(mark):
                _add(total, message.rate, message.tokens)
        return total

    def state(self) -> list[Any]:
        """Return the counts as values that JSON can represent."""
        return [
            _packed(self._open),
            _packed(self._subagents),
            [[[*rate], [*tokens]] for rate, tokens in self._sums.items()],
            "".join(self._seen),
        ]

    @classmethod
    def of_state(cls, state: list[Any]) -> "MessageCounts":
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
    """Return eight characters (48 bits of a hash) that identify a message or a line."""
    digest = blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=6).digest()
    return b64encode(digest).decode()


def _packed(messages: dict[str, OpenMessage]) -> dict[str, list[Any]]:
    return {mark: [[*it.rate], [*it.tokens], [*it.calls]] for mark, it in messages.items()}


def _unpacked(state: dict[str, list[Any]]) -> dict[str, OpenMessage]:
    return {
        mark: OpenMessage(Rate(*rate), Tokens(*tokens), dict.fromkeys(calls))
        for mark, (rate, tokens, calls) in state.items()
    }


def _add(sums: Sums, rate: Rate, tokens: Tokens) -> None:
    if any(tokens):
        sums[rate] = sums.get(rate, Tokens()).plus(tokens)
