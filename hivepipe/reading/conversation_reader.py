"""Parse archived lines into a conversation, independently of where they are stored.

The lines are read one by one, so the memory needed depends on the longest line only.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hivepipe.archive.archive_files import Meta
from hivepipe.archive.index import Entry
from hivepipe.errors import ArchiveError, DamagedArchiveError
from hivepipe.reading.pieces import AGENT, CALL, FAILURE, NOTE, RESULT, USER, Piece, pieces_of
from hivepipe.transcripts.lines import Fields, read_line, text

BEFORE, BEHIND = 20, 40  # number of pieces before and after a hit
LOOK_BACK_BYTES = 2 << 20  # bytes before a hit that are read for its context
DEEPEST = 8
MOST_CALLS = 1000  # calls whose names are kept for their results
LONGEST_PROMPT = 100  # characters shown of a prompt that was taken back


class Conversation(NamedTuple):
    """A conversation: session, agent, metadata, and a lazy iterator of messages and calls."""

    session: str
    agent: str
    agent_type: str
    meta: Meta
    pieces: Iterator[Piece]


class Line(NamedTuple):
    """A line redacted by the current rules, and its range of bytes in the archive."""

    begin: int
    end: int
    text: bytes


class Archived(Protocol):
    """The interface of a source with the archives of a session and its subagents."""

    def entry(self, key: str) -> Entry | None:
        """Return the archive of a key, <session> or <session>/<agent>, or None."""

    def of_subagents(self, session: str) -> dict[str, Entry]:
        """Return key -> entry of a session's subagents."""

    def lines(self, entry: Entry, begin: int) -> Iterator[Line]:
        """Yield an archive's lines from byte `begin` on. Raise DamagedArchiveError on damage."""

    def missing(self, entry: Entry) -> str:
        """Return a text that says which last lines were missing in the archive, or "".

        Call this after all lines of the archive were read.
        """


@dataclass
class Reader:
    """Reads conversations from the archives of this machine or of a team."""

    archived: Archived
    _calls: dict[str, str] = field(default_factory=dict)
    _last_call: str = ""
    _prompts: dict[str, tuple[str, str]] = field(default_factory=dict)
    _shown: set[str] = field(default_factory=set)

    def all(self, key: str, entry: Entry, depth: int = 0) -> Iterator[Piece]:
        """Yield all pieces. A subagent's pieces come after the call that started this subagent."""
        self._shown.add(key)
        for offset, line, _ in self._lines(entry, 0):
            for piece in self._pieces(line, offset, depth):
                if piece.kind == AGENT:
                    yield from self._agent(entry["session_id"], piece)
                else:
                    yield piece
        if missing := self.archived.missing(entry):
            yield Piece(NOTE, missing, depth=depth)
        if not depth and not entry["agent_id"]:
            yield from self._others(entry["session_id"])

    def around(self, entry: Entry, offset: int) -> Iterator[Piece]:
        """Yield the pieces of the line at an offset, and some pieces before and after the line.

        Raise ArchiveError if the archive has no byte at the offset.
        """
        before: deque[Piece] = deque(maxlen=BEFORE)
        behind, found = BEHIND, False
        begin = max(offset - LOOK_BACK_BYTES, 0)
        for at, line, end in self._lines(entry, begin):
            is_hit = at <= offset < end
            found = found or is_hit
            pieces = [each for each in self._pieces(line, at, 0) if each.kind != AGENT]
            if is_hit and not pieces:
                pieces = [Piece(NOTE, "this line is not part of the conversation", "", at)]
            for piece in pieces:
                if is_hit:
                    yield from before
                    before.clear()
                    yield piece._replace(is_hit=True)
                elif not found:
                    before.append(piece)
                elif behind:
                    behind -= 1
                    yield piece
            if found and not behind:
                return
        if not found:
            raise ArchiveError(f"the archive has no byte {offset}")

    def _agent(self, session: str, piece: Piece) -> Iterator[Piece]:
        """Yield the pieces of the subagent that `piece` names, unless they were yielded before."""
        key = f"{session}/{piece.id}"
        entry = self.archived.entry(key)
        if entry is None or key in self._shown or piece.depth >= DEEPEST:
            return
        yield piece._replace(text=entry["agent_type"], depth=piece.depth + 1)
        try:
            yield from self.all(key, entry, piece.depth + 1)
        except DamagedArchiveError as error:
            yield Piece(NOTE, str(error), depth=piece.depth + 1)

    def _others(self, session: str) -> Iterator[Piece]:
        """Yield the pieces of those subagents that no tool result names."""
        for entry in self.archived.of_subagents(session).values():
            yield from self._agent(session, Piece(AGENT, "", id=entry["agent_id"]))

    def _pieces(self, line: Fields, offset: int, depth: int) -> Iterator[Piece]:
        inner = depth + (not depth and line.get("isSidechain") is True and "agentId" not in line)
        for piece in pieces_of(line):
            placed = piece._replace(offset=offset, depth=inner)
            if piece.kind == USER and not inner and (earlier := self._taken_back(line, piece)):
                note = f"the conversation continues from before the prompt: {earlier}"
                yield placed._replace(kind=NOTE, text=note)
            if piece.kind == CALL:
                self._note_call(piece)
            elif piece.kind in (RESULT, FAILURE) and piece.id:
                is_clear = piece.id == self._last_call
                placed = placed._replace(of="" if is_clear else self._calls.get(piece.id, ""))
            yield placed

    def _taken_back(self, line: Fields, prompt: Piece) -> str:
        """Return the earlier prompt that a line's prompt replaces (as after /rewind), or "".

        The two prompts have the same parent line in the transcript.
        """
        follows, id = text(line, "parentUuid"), text(line, "uuid")
        earlier, words = self._prompts.get(follows, ("", ""))
        if not follows or earlier == id:
            return ""
        self._prompts[follows] = id, " ".join(prompt.text[:LONGEST_PROMPT].split())
        return words

    def _note_call(self, piece: Piece) -> None:
        """Remember the name of a call by its id, because results of parallel calls come later."""
        self._last_call = piece.id
        self._calls[piece.id] = piece.text
        if len(self._calls) > MOST_CALLS:
            del self._calls[next(iter(self._calls))]

    def _lines(self, entry: Entry, begin: int) -> Iterator[tuple[int, Fields, int]]:
        for line in self.archived.lines(entry, begin):
            yield line.begin, read_line(line.text) or {}, line.end
