"""Search in the shared prompts, summaries and log lines of a team by PostgreSQL's full text search.

Words match whole words, quotes enclose a phrase, and `word*` matches a prefix.
"""

import shlex
from dataclasses import dataclass

from hivepipe.archive.search.index import Hit
from hivepipe.db.listings import Entry
from hivepipe.reading.search import Found, Line, Question, around
from hivepipe.reading.team.source import OF_HOMES, Choice, Source, valid_time
from hivepipe.team.shared_rows import clean

_HOMES = f"SELECT home, person, machine FROM hivepipe.v_homes h WHERE {OF_HOMES}"
_NOTE = "SELECT hivepipe.note_search(%s::text[], %s::text[])"
_FOUND = """
    SELECT * FROM hivepipe.find_texts(%(phrases)s::text[], %(beginnings)s::text[],
      %(homes)s::int[], %(session)s, %(since)s, %(until)s, %(limit)s)
"""


@dataclass(frozen=True)
class TeamLine(Line):
    """A text found in the rows of a member's machine; `home` is the home's number on the server."""

    home: int = 0
    person: str = ""
    machine: str = ""

    @property
    def opened_by(self) -> str:
        """Return the command that shows the session of the text."""
        person = shlex.quote(self.person)
        return f"hivepipe session show {self.hit.session} --team --person {person}"

    def entry(self) -> dict[str, object]:
        """Return the line in the form of `hivepipe search --json`."""
        return {**super().entry(), "person": self.person, "machine": self.machine}


def team_search(source: Source, choice: Choice, question: Question, limit: int) -> Found:
    """Return the newest texts with all words; the server writes an audit entry with the hits.

    Raise SearchError if the query has no words.
    """
    terms = question.terms()
    whole = [clean(term.text) for term in terms if term.ends_word or not term.begins_word]
    begun = [clean(term.text) for term in terms if term.begins_word and not term.ends_word]
    homes = {row["home"]: row for row in source.rows(_HOMES, choice.values())}
    source.note(_NOTE, whole, begun)
    query = {"phrases": whole, "beginnings": begun, "homes": [*homes], "limit": limit}
    rows = source.noted_rows(
        _FOUND, {**choice.values(), **query, "session": clean(question.session)}
    )
    lines: list[Line] = [
        _line(row, homes[row["home"]], around(row["words"], terms)) for row in rows
    ]
    return Found(lines, rows[0]["total"] if rows else 0, 0, {})


def _line(row: Entry, owner: Entry, parts: tuple[str, str, str]) -> TeamLine:
    session = row["session_id"] or ""
    hit = Hit(session, session, "", "", 0, valid_time(row["at"]), row["kind"])
    return TeamLine(hit, *parts, home=row["home"], person=owner["person"], machine=owner["machine"])
