"""The views of a team (`team=1` in the URL), in the same form as this machine's views."""

from collections.abc import Iterator

from hivepipe.db.listings import Entry
from hivepipe.errors import ArchiveError, DamagedArchiveError, SearchError, TeamAwayError, TeamError
from hivepipe.reading.costs import GroupCost, agent_costs
from hivepipe.reading.pieces import Piece
from hivepipe.reading.team.agents import team_agents_by_session
from hivepipe.reading.team.conversation import team_conversation
from hivepipe.reading.team.costs import team_bills, team_costs_by_day
from hivepipe.reading.team.search import TeamLine, team_search
from hivepipe.reading.team.session import Found, session_of, session_store, team_time_line
from hivepipe.reading.team.sessions import open_team_sessions
from hivepipe.reading.team.source import Choice, Source, local_day, opened
from hivepipe.times import now as time_now
from hivepipe.web.agents_view import MOST_AGENTS
from hivepipe.web.costs_view import MOST_ROWS, costs_content
from hivepipe.web.now_view import MOST_SESSIONS
from hivepipe.web.search_view import HITS, MOST_HITS, empty_content, hit_of, question_of
from hivepipe.web.session_view import (
    MOST_EVENTS,
    content_of_archive,
    content_of_store,
    window_of,
    with_title,
)
from hivepipe.web.trend import first_day
from hivepipe.web.view_query import Content, FilterError, ViewQuery, day_begins


def session(query: ViewQuery) -> Content:
    """Return one session of a team; the read is recorded first.

    Raise StoreError if the reader has no right to see it.
    """
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
    """Return the costs of a session by agent and model, highest first, at the prices of `home`."""
    columns = ("agent", "type", "model")
    bills = team_bills(source, Choice(), columns, sessions=[(found.home, found.id)])
    return agent_costs(home, bills)


def _pieces(source: Source, found: Found, home: str) -> Iterator[Piece]:
    """Yield a conversation's pieces; raise DamagedArchiveError if the rest is unreadable.

    Raise TeamAwayError if the team's server is away.
    """
    try:
        yield from team_conversation(source, found, home).pieces
    except TeamAwayError:
        raise
    except (ArchiveError, TeamError) as error:  # no archive, no key, or no access to the store
        raise DamagedArchiveError(str(error)) from error


_OF_LINES = ("role", "agent", "tool", "project")  # filters that a team's search does not know


def choice_of(query: ViewQuery, since: str = "", until: str = "") -> Choice:
    """Return the choice of a team's rows by the filters `person`, `machine` and `team_project`."""
    person, machine = query.filter("person"), query.filter("machine")
    return Choice(person, machine, query.filter("team_project"), since, until)


def now(query: ViewQuery) -> Content:
    """Return at most MOST_SESSIONS open sessions of the team; `all=1` includes ended sessions."""
    with_ended = query.filter("all") == "1"
    with opened(query.reader) as source:
        found = open_team_sessions(
            source,
            choice_of(query),
            query.here,
            with_ended=with_ended,
            limit=MOST_SESSIONS + 1,
        )
    has_more = len(found) > MOST_SESSIONS
    return {"sessions": found[:MOST_SESSIONS], "has_more": has_more, "all": with_ended}


def agents(query: ViewQuery) -> Content:
    """Return the newest agents of the team by session."""
    kind, state = query.filter("type"), query.filter("outcome")
    with opened(query.reader) as source:
        found, has_more = team_agents_by_session(
            source, choice_of(query), query.here, limit=MOST_AGENTS, kind=kind, state=state
        )
    return {"sessions": found, "has_more": has_more}


def costs(query: ViewQuery) -> Content:
    """Return the team's costs by day, model, project, person and machine, and their sums."""
    model, since, until = (query.filter(name) for name in ("model", "since", "until"))
    if not (since or until or query.filter("all") == "1"):
        since = first_day(local_day(time_now()[0]))
    choice = choice_of(query, day_begins(since), day_begins(until, name="until"))
    with opened(query.reader) as source:
        found = team_costs_by_day(source, choice, query.here)
    chosen = [each for each in found if model in ("", each.key["model"])]
    sums = {name: _sums(chosen, name) for name in ("person", "machine", "project")}
    return {**costs_content(chosen, since), "sums": sums}


def _sums(found: list[GroupCost], name: str) -> list[tuple[str, float | None]]:
    """Return up to MOST_ROWS (value of column `name`, dollars or None), highest first."""
    sums: dict[str, float | None] = {}
    for each in found:
        key = each.key[name] if name != "machine" else f"{each.key['person']}/{each.key[name]}"
        before, dollars = sums.get(key), each.cost.rounded
        sums[key] = before if dollars is None else round((before or 0) + dollars, 6)
    return sorted(sums.items(), key=lambda pair: pair[1] or 0, reverse=True)[:MOST_ROWS]


def search(query: ViewQuery) -> Content:
    """Return the texts of the team with all words of `q`, or an error if a filter is invalid.

    Without `q`, nothing is searched.
    """
    if not query.filter("q"):
        return empty_content()
    try:
        if unknown := [name for name in _OF_LINES if query.filter(name)]:
            raise FilterError(f"the search of a team has no filter {', '.join(unknown)}")
        question = question_of(query)
        limit = query.number("limit", HITS, MOST_HITS)
        with opened(query.reader) as source:
            choice = choice_of(query, question.since, question.until)
            found = team_search(source, choice, question, limit)
    except (SearchError, FilterError) as error:
        return {**empty_content(), "error": str(error)}
    hits = [hit_of(line, line.home, "") for line in found.lines if isinstance(line, TeamLine)]
    return {**empty_content(), "total": found.total, "hits": hits, "limit": limit}


TEAM_VIEWS = {"now": now, "agents": agents, "costs": costs, "search": search, "session": session}
