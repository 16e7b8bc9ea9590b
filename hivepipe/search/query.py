"""What people type into a search: terms, where each stands, and conditions beside them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hivepipe.errors import SearchError

_PARTS = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"\w")
_SIGMA = "\N{GREEK SMALL LETTER SIGMA}"  # the other stands at the end of a word only
_ONLY_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Term:
    """One piece of text that is asked for, folded; it may have to begin, or to be, whole words."""

    text: str
    begins_word: bool = False
    ends_word: bool = False

    @property
    def is_of_words(self) -> bool:
        """Do the borders of words matter? A text without a letter or digit has none."""
        return self.begins_word and bool(_WORD.search(self.text))

    @property
    def is_one_word(self) -> bool:
        """Is it all letters, digits and underscores?"""
        return bool(_ONLY_WORD.fullmatch(self.text))

    def place_in(self, folded_text: str) -> tuple[int, int] | None:
        """Return where it stands first in a folded text."""
        if not self.is_of_words:
            begin = folded_text.find(self.text)
            return None if begin < 0 else (begin, begin + len(self.text))
        behind = r"(?!\w)" if self.ends_word else ""
        match = re.search(rf"(?<!\w){re.escape(self.text)}{behind}", folded_text)
        return match.span() if match else None


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions beside the words; empty: all lines."""

    sql: str = ""
    values: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        *,
        project: str = "",
        session: str = "",
        agent: str = "",
        since: str = "",
        until: str = "",
    ) -> "Filters":
        """`session` may be the beginning of an id; times are UTC, as the archive writes them."""
        conditions = {
            "AND substr(a.project || '/', 1, length(:project)) = :project": project,
            "AND substr(a.session_id, 1, length(:session)) = :session": session,
            "AND a.agent = :agent": agent,
            "AND p.time >= :since": since,
            "AND p.time < :until": until,
        }
        wanted = {sql: value for sql, value in conditions.items() if value}
        below = f"{project.rstrip('/')}/" if project else ""
        names = {"project": below, "session": session, "agent": agent}
        values = {**names, "since": since, "until": until}
        return cls(" ".join(wanted), {k: v for k, v in values.items() if v})


def flat(text: str) -> str:
    """Return a text in which all white space is one blank each."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return a text as it is compared: in one case, its white space one blank each."""
    return flat(text).lower().replace("\N{GREEK SMALL LETTER FINAL SIGMA}", _SIGMA)


def terms_of(asked: str, *, whole_words: bool = False) -> list[Term]:
    """Return what is asked for; SearchError: nothing is.

    "so" stands for a text with blanks, wor* for words that begin so. Nothing else is syntax: what
    people look for is full of dots, dashes and brackets.
    """
    terms = list(dict.fromkeys(_terms(asked, whole_words)))
    if not terms:
        raise SearchError("nothing to search for: give at least one word")
    return terms


def quoted(text: str) -> str:
    """Return a text as FTS5 takes it: nothing in it is syntax."""
    return '"{}"'.format(text.replace('"', '""'))


def fts_query(asked: str) -> str:
    """Return the question for an index of words: all of them, punctuation left out."""
    terms = [each for each in terms_of(asked) if _WORD.search(each.text)]
    if not terms:
        raise SearchError("nothing to search for: give at least one word")
    return " AND ".join(quoted(each.text) + "*" * each.begins_word for each in terms)


def _terms(asked: str, whole_words: bool) -> Iterator[Term]:
    for phrase, word in _PARTS.findall(asked):
        text = folded(phrase or word)
        stem = text.rstrip("*")
        if word.endswith("*") and _WORD.search(stem):
            yield Term(stem, begins_word=True)
        elif text:
            yield Term(text, whole_words, whole_words)
