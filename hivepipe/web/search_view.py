"""The view Search: lines with all words, counts by facet, and the conversation of one hit."""

import time
from collections import Counter
from pathlib import Path

from hivepipe.archive.search.passages import ROLES
from hivepipe.errors import HivepipeError, SearchError
from hivepipe.reading.conversation import conversation
from hivepipe.reading.homes import KnownHome, settings_of
from hivepipe.reading.search import Found, Line, Question, find
from hivepipe.web.view_query import Content, FilterError, ViewQuery

HITS = 50
MOST_HITS = 1000
INDEXING_SECS = 2.0  # for all homes together; the next request continues
FACETS = ("day", "project", "agent", "role", "tool")
MOST_VALUES = 12  # values shown of one facet


def search(query: ViewQuery) -> Content:
    """Return the hits for `q`, or an error if the query or a filter is invalid.

    Without `q`, nothing is searched.
    """
    empty = empty_content()
    if not query.filter("q"):
        return empty
    try:
        return {**empty, **_answer(query)}
    except (SearchError, FilterError) as error:
        return {**empty, "error": str(error)}


def empty_content() -> Content:
    """Return the content of a search without hits."""
    return {
        "total": 0,
        "not_indexed_bytes": 0,
        "hits": [],
        "facets": {},
        "opened": None,
        "troubles": [],
        "limit": HITS,
        "roles": ROLES,
        "error": "",
    }


def _answer(query: ViewQuery) -> Content:
    limit = query.number("limit", HITS, MOST_HITS)
    question = question_of(query)
    question.terms()  # raises SearchError for an invalid query, before any home is searched
    there = [known for known in query.homes if Path(known.home).is_dir()]
    until = time.monotonic() + INDEXING_SECS
    found, troubles = [], []
    for known in there:
        try:
            found.append((known, _find(known, question, limit, until - time.monotonic())))
        except SearchError as error:
            troubles.append(str(error))
    hits = [(known, line) for known, each in found for line in each.lines]
    hits.sort(key=lambda pair: pair[1].hit.time, reverse=True)
    hits.sort(key=lambda pair: pair[1].hit.is_own)
    return {
        "total": sum(each.total for _, each in found),
        "not_indexed_bytes": sum(each.not_indexed_bytes for _, each in found),
        "hits": [
            hit_of(line, known.key, f"{known.key}@{line.hit.offset}@{line.hit.key}")
            for known, line in hits[:limit]
        ],
        "facets": _facets([each for _, each in found]),
        "opened": _opened(query),
        "troubles": troubles,
        "limit": limit,
    }


def question_of(query: ViewQuery) -> Question:
    """Return the query in a URL, or raise FilterError; `day` means from that day to the next."""
    return Question(
        query.filter("q"),
        whole_words=query.filter("word") == "1",
        project=query.filter("project"),
        session=query.filter("session"),
        agent=query.filter("agent"),
        role=query.filter("role"),
        tool=query.filter("tool"),
        since=query.time("day") or query.time("since"),
        until=query.time("day", days=1) or query.time("until"),
    )


def _find(known: KnownHome, question: Question, limit: int, secs: float) -> Found:
    with settings_of(known.home):
        return find(known.home, question, limit, indexing_secs=secs, with_facets=True)


def hit_of(line: Line, home: str | int, ref: str) -> Content:
    """Return a hit; `ref` is the value of `open` that shows the hit's conversation, or ""."""
    parts = [line.before, line.match, line.behind]
    return {**line.entry(), "parts": parts, "home": home, "ref": ref}


def _facets(found: list[Found]) -> dict[str, list[tuple[str, int]]]:
    """Return the most frequent values of each facet; days are sorted from the newest."""
    facets = {}
    for name in FACETS:
        counted: Counter[str] = Counter()
        for each in found:
            counted.update(each.facets.get(name, {}))
        values = counted.most_common()
        if name == "day":
            values.sort(reverse=True)
        facets[name] = values[:MOST_VALUES]
    return facets


def _opened(query: ViewQuery) -> Content | None:
    """Return the conversation around the hit that `open` in the URL names, or None if invalid."""
    key, _, rest = query.filter("open").partition("@")
    offset, _, archive = rest.partition("@")
    known = next((known for known in query.homes if known.key == key), None)
    if not known or not (offset.isascii() and offset.isdigit()) or len(offset) > 18:
        return None
    session, _, agent = archive.partition("/")
    opened: Content = {"ref": query.filter("open"), "home": key, "session_id": session, "error": ""}
    try:
        with settings_of(known.home):
            pieces = conversation(known.home, agent or session, around=int(offset)).pieces
        return {**opened, "pieces": [piece._asdict() for piece in pieces]}
    except HivepipeError as error:
        return {**opened, "pieces": [], "error": str(error)}
