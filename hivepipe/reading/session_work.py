"""The work of a session: tool calls, in one lane per agent, and changes by file."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hivepipe.archive.sources import UNKNOWN_TYPE
from hivepipe.reading.pieces import AGENT, CALL, FAILURE, RESULT, USER, Piece

LONGEST_MARK = 400  # characters of a mark's text


@dataclass
class Call:
    """One tool call.

    `piece` is the number of the call's piece. `ended` is "" if the call has no result.
    """

    text: str
    began: str
    piece: int
    ended: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Mark:
    """A prompt or an error; `kind` is the kind of the piece."""

    kind: str
    text: str
    at: str
    piece: int


@dataclass(frozen=True)
class Lane:
    """The calls, prompts and errors of one agent ("" for Claude itself), oldest first.

    `parent` is the agent that started this agent; `depth` is 0 for Claude, 1 for a subagent, and so
    on.
    """

    agent: str
    title: str
    parent: str = ""
    depth: int = 0
    calls: list[Call] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True)
class FileChange:
    """One change of a file: the call, and the lines that it removes (-) and adds (+)."""

    call: Call
    diff: tuple[str, ...]


@dataclass(frozen=True)
class Work:
    """The lanes, the changes by file, and the first and last time ("" if there are no times)."""

    lanes: list[Lane]
    files: dict[str, list[FileChange]]
    began: str
    ended: str


def work_of(pieces: Iterable[Piece]) -> Work:
    """Return the work in the pieces of a conversation; pieces are numbered from 1."""
    reader = _Reader()
    for number, piece in enumerate(pieces, 1):
        reader.read(number, piece)
    return Work([*reader.lanes.values()], reader.files, reader.began, reader.ended)


class _Reader:
    """Sorts pieces into lanes; deeper pieces after an AGENT piece go into that agent's lane."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {"": Lane("", "claude")}
        self.files: dict[str, list[FileChange]] = {}
        self.began = self.ended = ""
        self._agents = {0: ""}  # depth -> agent
        self._open: dict[str, Call] = {}

    def read(self, number: int, piece: Piece) -> None:
        if piece.at:
            self.began = min(filter(None, (self.began, piece.at)))
            self.ended = max(self.ended, piece.at)
        if piece.kind == AGENT:
            self._agents[piece.depth] = piece.id
            title = _named(piece)
            parent = self._agents.get(piece.depth - 1, "")
            self.lanes.setdefault(piece.id, Lane(piece.id, title, parent, piece.depth))
            return
        lane = self.lanes[self._agents.get(piece.depth, "")]
        if piece.kind == CALL:
            self._begin(lane, Call(piece.text, piece.at, number), piece)
        elif piece.kind in (RESULT, FAILURE) and piece.id:
            self._end(piece)
        elif piece.kind in (USER, FAILURE) and piece.at:
            lane.marks.append(Mark(piece.kind, piece.text[:LONGEST_MARK], piece.at, number))

    def _begin(self, lane: Lane, call: Call, piece: Piece) -> None:
        if piece.at:
            lane.calls.append(call)
        self._open[piece.id] = call
        if piece.diff:
            path = piece.text.partition(" ")[2]
            self.files.setdefault(path, []).append(FileChange(call, piece.diff))

    def _end(self, piece: Piece) -> None:
        call = self._open.pop(piece.id, None)
        if call:
            call.ended = piece.at
            call.failed = piece.kind == FAILURE


def _named(agent: Piece) -> str:
    """Return the type and a short id of an agent.

    The short id is the part before the first dash. An id without a dash is cut to 8 characters.
    """
    kind = agent.text if agent.text not in ("", UNKNOWN_TYPE) else "agent"
    word, dash, _ = agent.id.partition("-")
    return f"{kind} {word if dash else agent.id[:8]}"
