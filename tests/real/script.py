"""What the fake of the Messages API says: a script is a list of turns, known by its name.

A prompt names its script as `<<name>>`. Which turn comes next is the number of answers that stand
behind that prompt in the request, so that resumed sessions, forks and subagents need no state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

CWD = "{cwd}"  # in the input of a call: the folder in which the session works
AGENT_ID = "{agent}"  # the id of the subagent that was started last


@dataclass(frozen=True, slots=True)
class Say:
    """A piece of text of an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    `fails`: the client says that it went wrong. `is_invalid`: it says so before the tool runs, and
    fires no event of the call. `is_denied`: it asks the hook, then a rule or a person says no.
    """

    tool: str
    input: dict[str, Any]
    fails: bool = False
    is_invalid: bool = False
    is_denied: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error of the API: its status and its type; `then` is answered when it is asked again."""

    status: int
    kind: str
    then: "Answer | None" = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends within the answer; `then` is answered when it is asked again."""

    then: "Answer"


@dataclass(frozen=True, slots=True)
class Slow:
    """An answer that begins at once and goes on after some seconds."""

    then: "Answer"
    secs: float


Answer = Sequence[Say | Call]
Turn = Answer | Refuse | Cut | Slow


@dataclass(frozen=True, slots=True)
class Script:
    """The turns of one prompt, whoever gave it."""

    name: str
    turns: Sequence[Turn]

    @property
    def calls(self) -> list[Call]:
        """Every call that it orders, in order."""
        return [piece for piece in self._pieces() if isinstance(piece, Call)]

    @property
    def said(self) -> list[Say]:
        """Every piece of text that it says, in order."""
        return [piece for piece in self._pieces() if isinstance(piece, Say)]

    def _pieces(self) -> Iterator[Say | Call]:
        for turn in self.turns:
            answer = turn.then if isinstance(turn, Refuse | Cut | Slow) else turn
            yield from answer or ()

    def prompt(self, text: str) -> str:
        """Return the text as a prompt that this script answers."""
        return f"{text} <<{self.name}>>"
