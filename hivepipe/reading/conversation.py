"""An archived transcript as a conversation: pieces in order, subagents after their calls.

This module opens the archives of this machine, and `conversation_reader` parses the lines. A line
is redacted again with the current rules, unless it was written with the same rules and no secret of
the session was found later.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from hivepipe.archive.archive_files import ArchiveFiles
from hivepipe.archive.archives import Archives
from hivepipe.archive.found_values import is_cleared_of
from hivepipe.archive.index import Entry
from hivepipe.archive.offsets import Offsets
from hivepipe.config import setting_table
from hivepipe.errors import ArchiveError, DamagedArchiveError
from hivepipe.files.change_stamp import stamp
from hivepipe.operations.archive import archives_of
from hivepipe.reading.conversation_reader import Conversation, Line, Reader
from hivepipe.reading.session_lookup import NO_ARCHIVE, session_named
from hivepipe.redact.of_home import load_redactor, rules_in_force

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor


def conversation(home: str, start: str, around: int | None = None) -> Conversation:
    """Return the conversation of the session or subagent whose id begins with `start`.

    If `start` is `last`, return the conversation of the newest session. `around` is a byte offset
    from a search hit. With `around`, return only the pieces of the line there and of lines around
    it. Raise ArchiveError if the session is not archived or its archive has no such byte. Iterating
    over the pieces may raise DamagedArchiveError if the rest of the archive cannot be read.
    """
    archives = archives_of(home)
    key = _key(home, archives, start)
    entry = archives.index.entries()[key]
    reader = Reader(_LocalArchives(home, archives, entry["session_id"]))
    # The few pieces around an offset are read now, to report a missing offset before any output.
    pieces = reader.all(key, entry) if around is None else iter([*reader.around(entry, around)])
    meta = archives.meta_of(entry) or {}
    return Conversation(entry["session_id"], entry["agent_id"], entry["agent_type"], meta, pieces)


def state_of_archives(home: str, session: str) -> tuple[object, ...] | None:
    """Return a value that changes when a session's conversation changes, or None if unknown."""
    archives = archives_of(home)
    stamps: list[object] = [stamp(path) for path in setting_table.files(home)]  # rules
    try:
        for key, entry in archives.of_session(session).items():
            with archives.opened(entry) as kept:
                stamps.append((key, kept.lines_stamp()))
    except OSError:
        return None
    return tuple(stamps)


def _key(home: str, archives: Archives, start: str) -> str:
    entries = archives.index.entries()
    if not entries:
        raise ArchiveError(NO_ARCHIVE)
    with suppress(ArchiveError):
        return archives.find(start)[0]
    session = session_named(home, start)
    if session not in entries:
        raise ArchiveError(f"session {session} has no archive")
    return session


class _LocalArchives:
    """The archives of a home; implements `Archived`."""

    def __init__(self, home: str, archives: Archives, session: str) -> None:
        self._home = home
        self._archives = archives
        self._missing = ""  # what is missing at the end of the last archive that was read
        self._rules = rules_in_force(home)
        # Includes secrets that were found after a line was archived and are still in the archive.
        self._known = archives.known_of(session)

    @cached_property
    def _redactor(self) -> "Redactor":
        return load_redactor(self._home).of_session(self._known)

    def entry(self, key: str) -> Entry | None:
        return self._archives.index.entries().get(key)

    def of_subagents(self, session: str) -> dict[str, Entry]:
        return self._archives.of_subagents(session)

    def missing(self, _entry: Entry) -> str:
        missing, self._missing = self._missing, ""
        return missing

    def lines(self, entry: Entry, begin: int) -> Iterator[Line]:
        """Yield the committed lines from byte `begin` on. Raise DamagedArchiveError on damage."""
        try:
            yield from self._committed(entry, begin)
        except OSError as error:
            raise _damaged(entry, error.strerror or str(error)) from error

    def _committed(self, entry: Entry, begin: int) -> Iterator[Line]:
        with self._archives.opened(entry) as kept, kept.open_to_read() as file:
            offsets = kept.offsets()
            length = offsets.length if offsets else 0
            offset = max(begin - 1, 0)
            if not offsets or offset >= length:  # `seek` fails for an offset that is too large
                return
            is_clean = self._is_clean(kept, offsets)
            file.seek(offset)
            if offset:
                offset += len(file.readline())
            while offset < length and (raw := file.readline()):
                end = offset + len(raw)
                yield Line(offset, end, raw if is_clean else self._redactor.redact_line(raw)[0])
                offset = end
        if offset < length:
            self._missing = str(_damaged(entry, f"it ends at byte {offset} of {length}"))

    def _is_clean(self, kept: ArchiveFiles, offsets: Offsets) -> bool:
        """Tell whether the lines are already redacted according to the current rules."""
        is_cleared = is_cleared_of(kept, self._known)
        return is_cleared and kept.were_redacted_by(self._rules, offsets)


def _damaged(entry: Entry, reason: str) -> DamagedArchiveError:
    of = entry["agent_id"] or entry["session_id"]
    return DamagedArchiveError(f"archive of {of}: {reason}; `hivepipe archive verify` checks all")
