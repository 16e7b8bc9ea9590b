"""The view Session of a team; reads of other members' sessions are first recorded."""

from collections.abc import Iterator

from hivepipe.db.listings import Entry
from hivepipe.errors import ArchiveError, DamagedArchiveError, TeamAwayError, TeamError
from hivepipe.reading.costs import agent_costs
from hivepipe.reading.pieces import Piece
from hivepipe.reading.team.conversation import team_conversation
from hivepipe.reading.team.costs import team_bills
from hivepipe.reading.team.session import Found, session_of, session_store, team_time_line
from hivepipe.reading.team.source import Choice, Source, opened
from hivepipe.web.session_view import (
    MOST_EVENTS,
    content_of_archive,
    content_of_store,
    window_of,
    with_title,
)
from hivepipe.web.view_query import Content, ViewQuery


def session(query: ViewQuery) -> Content:
    """Return one session of a team. Raise StoreError if the reader has no right to see it."""
    window, error = window_of(query)
    home = query.here
    with opened(query.reader) as source:
        found = session_of(source, query.team_home, query.session)
        with session_store(source, found) as store:
            line = team_time_line(source, found, store, home, MOST_EVENTS)
            of_store = content_of_store(store, found.id, line, _costs(source, found, home))
        of_archive = content_of_archive(_pieces(source, found, home), window)
    owner = {"person": found.person, "machine": found.machine}
    return with_title({"id": found.id, "error": error, **owner, **of_store, **of_archive})


def _costs(source: Source, found: Found, home: str) -> list[Entry]:
    """Return the costs by agent and model, highest first."""
    columns = ("agent", "type", "model")
    bills = team_bills(source, Choice(), columns, sessions=[(found.home, found.id)])
    return agent_costs(home, bills)


def _pieces(source: Source, found: Found, home: str) -> Iterator[Piece]:
    """Yield a conversation's pieces; raise DamagedArchiveError if the rest is unreadable."""
    try:
        yield from team_conversation(source, found, home).pieces
    except TeamAwayError:
        raise
    except (ArchiveError, TeamError) as error:  # no archive, no key, or no access to the store
        raise DamagedArchiveError(str(error)) from error
