"""Scripts of the fake Messages API: a script is a named list of turns.

A prompt names its script as `<<name>>`. The number of answers after that prompt in the request
selects the next turn, so resumed sessions, forks and subagents need no state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

CWD = "{cwd}"  # placeholder in the input of a call: the working folder of the session
AGENT_ID = "{agent}"  # placeholder: the id of the subagent that was started last


@dataclass(frozen=True, slots=True)
class Say:
    """A text block of an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    `fails`: the client reports an error. `is_invalid`: the client reports the error before the tool
    runs and sends no hook event of the call. `is_denied`: a rule or the user denies the call after
    its PreToolUse hook.
    """

    tool: str
    input: dict[str, Any]
    fails: bool = False
    is_invalid: bool = False
    is_denied: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error of the API with its status and type; `then` answers the client's retry."""

    status: int
    kind: str
    then: "Answer | None" = None


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer whose connection is closed in the middle; `then` answers the client's retry."""

    then: "Answer"


@dataclass(frozen=True, slots=True)
class Slow:
    """An answer that pauses after each piece."""

    then: "Answer"
    secs: float


Answer = Sequence[Say | Call]
Turn = Answer | Refuse | Cut | Slow


@dataclass(frozen=True, slots=True)
class Script:
    """The turns that answer one prompt."""

    name: str
    turns: Sequence[Turn]

    @property
    def calls(self) -> list[Call]:
        """Every call of the script, in order."""
        return [piece for piece in self._pieces() if isinstance(piece, Call)]

    @property
    def said(self) -> list[Say]:
        """Every text of the script, in order."""
        return [piece for piece in self._pieces() if isinstance(piece, Say)]

    def _pieces(self) -> Iterator[Say | Call]:
        for turn in self.turns:
            answer = turn.then if isinstance(turn, Refuse | Cut | Slow) else turn
            yield from answer or ()

    def prompt(self, text: str) -> str:
        """Return a prompt with this text that selects the script."""
        return f"{text} <<{self.name}>>"
