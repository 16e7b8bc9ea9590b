"""Parse search queries: terms and filters."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from unicodedata import normalize

from hivepipe.errors import SearchError

_PARTS = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"\w")
_SIGMA = "\N{GREEK SMALL LETTER SIGMA}"  # the final form occurs only at the end of a word
_ONLY_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Term:
    """A text to search for, in folded form.

    With `begins_word`, a match must begin at a word boundary; with `ends_word` too, a match must
    also end at one. A text without a letter or digit is found anywhere.
    """

    text: str
    begins_word: bool = False
    ends_word: bool = False

    @property
    def is_of_words(self) -> bool:
        """Tell whether the term must begin at a word boundary, and has a letter or digit."""
        return self.begins_word and bool(_WORD.search(self.text))

    @property
    def is_one_word(self) -> bool:
        """Tell whether the text consists of letters, digits and underscores."""
        return bool(_ONLY_WORD.fullmatch(self.text))

    def place_in(self, folded_text: str) -> tuple[int, int] | None:
        """Return the range of the term's first occurrence in a folded text, or None."""
        if not self.is_of_words:
            begin = folded_text.find(self.text)
            return None if begin < 0 else (begin, begin + len(self.text))
        behind = r"(?!\w)" if self.ends_word else ""
        match = re.search(rf"(?<!\w){re.escape(self.text)}{behind}", folded_text)
        return match.span() if match else None


_CONDITIONS = {
    "project": "AND substr(a.project || '/', 1, length(:project)) = :project",
    "session": "AND substr(a.session_id, 1, length(:session)) = :session",
    "agent": "AND a.agent = :agent",
    "who": "AND p.who = :who",
    "tool": "AND p.tool = :tool",
    "since": "AND p.time >= :since",
    "until": "AND p.time < :until",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """SQL conditions that restrict a search, in addition to its terms."""

    sql: str = ""
    values: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, *, project: str = "", **others: str) -> "Filters":
        """Return the SQL of the filters that have a value. Their names are keys of `_CONDITIONS`.

        The filter `session` may be a prefix of an id, and times are in UTC.
        """
        below = f"{project.rstrip('/')}/" if project else ""
        wanted = {name: each for name, each in {"project": below, **others}.items() if each}
        return cls(" ".join(_CONDITIONS[name] for name in wanted), dict(wanted))


def flat(text: str) -> str:
    """Return a text in Unicode's form NFC, with each run of white space as one space."""
    return " ".join(normalize("NFC", text).split())


def folded(text: str) -> str:
    """Return a text in the form used for comparison: lower case, with single spaces."""
    return flat(text).lower().replace("\N{GREEK SMALL LETTER FINAL SIGMA}", _SIGMA)


def terms_of(query: str, *, whole_words: bool = False) -> list[Term]:
    """Return the terms of a query.

    "some text" in quotes is a phrase, and wor* matches words with this prefix. There is no other
    syntax, because searched texts are full of dots, dashes and brackets. Raises SearchError if the
    query has no term.
    """
    terms = list(dict.fromkeys(_terms(query, whole_words)))
    if not terms:
        raise SearchError("nothing to search for: give at least one word")
    return terms


def query_of(words: Iterable[str]) -> str:
    """Return the query of a command line's words: a word with a space is a phrase."""
    return " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)


def quoted(text: str) -> str:
    """Return a text as an FTS5 string, so that none of it is query syntax."""
    return '"{}"'.format(text.replace('"', '""'))


def fts_query(query: str) -> str:
    """Return the FTS5 query for all words of a search; raise SearchError if it has no word."""
    terms = [each for each in terms_of(query) if _WORD.search(each.text)]
    if not terms:
        raise SearchError("nothing to search for: give at least one word")
    return " AND ".join(quoted(each.text) + "*" * each.begins_word for each in terms)


def _terms(query: str, whole_words: bool) -> Iterator[Term]:
    for phrase, word in _PARTS.findall(query):
        text = folded(phrase or word)
        stem = text.rstrip("*")
        if word.endswith("*") and _WORD.search(stem):
            yield Term(stem, begins_word=True)
        elif text:
            yield Term(text, whole_words, whole_words)
