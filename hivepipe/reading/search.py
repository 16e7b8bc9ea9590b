"""Search in the archived transcripts and summaries of a home, for commands and pages."""

import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache

from hivepipe.archive.search.index import Archived, Hit, SearchIndex
from hivepipe.archive.search.passages import passage_of
from hivepipe.archive.search.query import Filters, Term, flat, folded, terms_of
from hivepipe.files.state_cache import StateCache
from hivepipe.operations.archive import archives_of
from hivepipe.operations.search import archived_named, index_path, line_at
from hivepipe.operations.unindexed import Unindexed, index_new, unindexed

AROUND = 60  # characters on either side of a match
INDEXING_SECS = 10.0  # time limit; the search then omits the oldest lines
LEAST_INDEXING_SECS = 0.02  # minimum per search, so that the index gets complete
SUMMARY = "summary"  # the role of hivepipe's summaries
# The only letter whose lower case form has two characters.
_DOTTED_I, _DOT = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "\N{COMBINING DOT ABOVE}"


@dataclass(frozen=True)
class Question:
    """A query: words, and filters ("" matches all). `since` and `until` are times of the store.

    `project` is an absolute path.
    """

    words: str
    whole_words: bool = False
    project: str = ""
    session: str = ""
    agent: str = ""
    role: str = ""
    tool: str = ""
    since: str = ""
    until: str = ""

    def terms(self) -> list[Term]:
        """Return the terms of the query; raise SearchError if the query has no terms."""
        return terms_of(self.words, whole_words=self.whole_words)

    def filters(self) -> Filters:
        """Return the filters of the query as SQL conditions."""
        return Filters.of(
            project=self.project,
            session=self.session,
            agent=self.agent,
            who=self.role,
            tool=self.tool,
            since=self.since,
            until=self.until,
        )


@dataclass(frozen=True)
class Line:
    """A found line, and the parts of its text around the first match."""

    hit: Hit
    before: str
    match: str
    behind: str

    @property
    def opened_by(self) -> str:
        """Return the command that shows the line and the lines around it."""
        if self.hit.who == SUMMARY:
            return f"hivepipe summaries show {self.hit.session}"
        archive = self.hit.key.partition("/")[2] or self.hit.session
        return f"hivepipe transcript {archive} --around {self.hit.offset}"

    def entry(self) -> dict[str, object]:
        """Return the line in the form of `hivepipe search --json`."""
        return {
            "time": self.hit.time,
            "session_id": self.hit.session,
            "agent_type": self.hit.agent,
            "project": self.hit.project,
            "who": self.hit.who,
            "tool": self.hit.tool,
            "text": f"{self.before}{self.match}{self.behind}",
            "archive": self.hit.key,
            "offset": self.hit.offset,
            "open": self.opened_by,
        }


@dataclass(frozen=True)
class Found:
    """The result of a search.

    `lines` has the first of the `total` lines that match. `facets` maps each facet to the number of
    matching lines by value.
    """

    lines: list[Line]
    total: int
    not_indexed_bytes: int
    facets: dict[str, dict[str, int]]


def find(
    home: str,
    question: Question,
    limit: int,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    *,
    indexing_secs: float = INDEXING_SECS,
    with_facets: bool = False,
) -> Found:
    """Index new lines, then return the lines with all words, newest first.

    Lines in which Claude calls hivepipe come last. `progress` is called before the first archive
    and after each one; it gets the number of bytes just indexed, and the number of bytes to index
    in all. Raise SearchError if the query has no words or the index cannot be used.
    """
    question.terms()
    archives = archives_of(home)
    with closing(SearchIndex(index_path(home))) as index:
        new = unindexed(home, index, archives)
        left = _index(index, new, progress, indexing_secs)
        state = (index.state(), index.folders(), archives.index.entries())
        return _LAST.get(
            (home, question, limit, with_facets, left),
            state if new.is_settled else None,
            lambda: _search(home, index, question, limit, left, with_facets=with_facets),
        )


_LAST: StateCache[Found] = StateCache(8)


def _index(
    index: SearchIndex, new: Unindexed, progress: Callable[[int, int], None], secs: float
) -> int:
    """Index new lines for at most `secs`; return the number of bytes that are not indexed yet.

    The time begins when the first new lines are read, so that each call indexes some lines.
    """
    until = cache(lambda: time.monotonic() + max(secs, LEAST_INDEXING_SECS))
    missing = new.missing_bytes(index)
    progress(0, missing)
    return index_new(
        index,
        new,
        lambda done: progress(done, missing),
        lambda: time.monotonic() > until(),
    )


def _search(
    home: str, index: SearchIndex, question: Question, limit: int, left: int, *, with_facets: bool
) -> Found:
    terms, filters = question.terms(), question.filters()
    hits = index.find(terms, filters, limit)
    there = archived_named(home, archives_of(home), (hit.key for hit in hits))
    lines = [
        Line(hit, *around(_words(there[hit.key], hit), terms)) for hit in hits if hit.key in there
    ]
    if not with_facets:
        return Found(lines, index.count(terms, filters), left, {})
    facets = index.facets(terms, filters)
    named = {name: {key: n for key, n in each.items() if key} for name, each in facets.items()}
    return Found(lines, facets["day"].total(), left, named)


def _words(archived: Archived, hit: Hit) -> str:
    """Return the text of a line, or "" if the archive no longer has it."""
    with suppress(ValueError):  # the line was damaged after it was indexed
        passage = passage_of(line_at(archived, hit.offset))
        return passage.words if passage else ""
    return ""


def around(text: str, terms: list[Term]) -> tuple[str, str, str]:
    """Return the text before the first match, the match, and the text after the match."""
    text = flat(text).replace(_DOTTED_I, f"I{_DOT}")
    low = folded(text)
    places = [place for term in terms if (place := term.place_in(low))]
    if not places:
        return text[: 2 * AROUND], "", ""
    begin, end = places[0]
    before = text[max(begin - AROUND, 0) : begin]
    behind = text[end : end + AROUND]
    return (
        ("…" if begin > AROUND else "") + before,
        text[begin:end],
        behind + ("…" if end + AROUND < len(text) else ""),
    )
