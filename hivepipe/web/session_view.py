"""The view Session: conversation, time line, cost by agent, files and events of a session."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from hivepipe import redact
from hivepipe.db.listings import Entry, Listings
from hivepipe.errors import ArchiveError, DamagedArchiveError
from hivepipe.files.state_cache import StateCache
from hivepipe.reading.conversation import conversation, state_of_archives
from hivepipe.reading.costs import agent_costs, bills
from hivepipe.reading.homes import settings_of
from hivepipe.reading.now import state_of
from hivepipe.reading.pieces import USER, Piece
from hivepipe.reading.session_lookup import session_in
from hivepipe.reading.session_name import name_of
from hivepipe.reading.session_work import FileChange, work_of
from hivepipe.reading.time_line import TimeLine, time_line
from hivepipe.web.drawing import drawing_of
from hivepipe.web.view_query import Content, FilterError, ViewQuery

MOST_READ = 20_000  # pieces read
MOST_PIECES = 200  # pieces shown
LAST_PIECES = 100
MOST_EVENTS = 500
MOST_CHANGES = 200
LONGEST_PROMPT = 200  # characters of a prompt that names a session


@dataclass(frozen=True)
class Window:
    """The visible part of a conversation: its times ("" means no limit) and the first piece."""

    since: str = ""
    until: str = ""
    first: int = 1

    def shows(self, number: int, piece: Piece) -> bool:
        return (
            number >= self.first
            and (not self.since or self.since <= piece.at)
            and (not self.until or piece.at <= self.until)
        )


_LAST: StateCache[Content] = StateCache(2)


def session(query: ViewQuery) -> Content:
    """Return one session from time `from` to `to`; the conversation begins at piece `piece`.

    Raise StoreError for an unknown session.
    """
    window, error = window_of(query)
    known = query.homes[0]
    home = known.home
    with known.store() as store:
        full_id = session_in(home, store, query.session)
        found = time_line(home, store, full_id, MOST_EVENTS)
        added = bills(store, ("agent", "type", "model"), sessions=[full_id])
        of_store = content_of_store(store, full_id, found, agent_costs(home, added))
    with settings_of(known.home):
        of_archive = _LAST.get(
            (home, full_id, window),
            state_of_archives(home, full_id),
            lambda: content_of_archive(_pieces(home, full_id), window),
        )
    has_transcript = os.path.exists((found.session or {}).get("transcript_path") or "")
    around = {"id": full_id, "error": error, "has_transcript": has_transcript}
    return with_title({**around, **of_store, **of_archive})


def window_of(query: ViewQuery) -> tuple[Window, str]:
    """Return the window in the URL and "", or an unlimited window and the error of the URL."""
    try:
        return Window(query.time("from"), query.time("to"), query.number("piece", 1, MOST_READ)), ""
    except FilterError as wrong:
        return Window(), str(wrong)


def content_of_store(store: Listings, session: str, found: TimeLine, costs: list[Entry]) -> Content:
    return {
        **found._asdict(),
        "state": state_of(str(found.session["condition"])) if found.session else "",
        "about": store.titles([session]).get(session) or found.session or {},
        "events": [event._asdict() for event in found.events],
        "cost": found.cost._asdict(),
        "agent_costs": costs,
        "agent_rows": list(store.agents(session, limit=MOST_EVENTS)),
    }


def with_title(content: Content) -> Content:
    """Return a session's content with its name: from its row, or the archive's first prompt."""
    about, first = content.pop("about"), content.pop("first_prompt")
    name = name_of(content["id"], {**about, "prompt": about.get("prompt") or first})
    return {**content, "name": name}


def content_of_archive(pieces: Iterator[Piece], window: Window) -> Content:
    reading = _Reading(window)
    work = work_of(reading.all(pieces))
    redact.free_memory()
    shown = reading.within[:MOST_PIECES]
    more = reading.within[MOST_PIECES:]
    return {
        "first_prompt": reading.first_prompt,
        "drawing": drawing_of(work, window.since, window.until),
        "changes": _newest(work.files),
        "pieces": shown,
        "shown": {piece["number"] for piece in shown},
        "first": window.first,
        "next": more[0]["number"] if more else 0,
        "last": max(reading.number - LAST_PIECES, 1),
        "pieces_left_out": reading.has_more,
        "archive_trouble": reading.trouble,
    }


def _pieces(home: str, session: str) -> Iterator[Piece]:
    try:
        yield from conversation(home, session).pieces
    except DamagedArchiveError:
        raise
    except ArchiveError:  # the session is not archived yet
        return


@dataclass
class _Reading:
    """Reads a conversation once; keeps the pieces in the window and one piece after the window.

    `trouble` says why a part of the archive could not be read, or is "".
    """

    window: Window
    within: list[Content] = field(default_factory=list)
    number: int = 0
    first_prompt: str = ""
    has_more: bool = False
    trouble: str = ""

    def all(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        try:
            for piece in pieces:
                if self.number == MOST_READ:
                    self.has_more = True
                    return
                self.number += 1
                if piece.kind == USER and not (self.first_prompt or piece.depth):
                    self.first_prompt = piece.text[:LONGEST_PROMPT]
                if len(self.within) <= MOST_PIECES and self.window.shows(self.number, piece):
                    self.within.append({"number": self.number, **piece._asdict()})
                yield piece
        except DamagedArchiveError as error:
            self.trouble = str(error)


def _newest(files: dict[str, list[FileChange]]) -> dict[str, list[FileChange]]:
    """Return the newest MOST_CHANGES of all changes, by file."""
    every = sorted(
        ((path, change) for path, changes in files.items() for change in changes),
        key=lambda pair: pair[1].call.piece,
    )
    newest: dict[str, list[FileChange]] = {}
    for path, change in every[-MOST_CHANGES:]:
        newest.setdefault(path, []).append(change)
    return newest
