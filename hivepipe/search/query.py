"""What people type, as FTS5 and SQL take it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hivepipe.errors import SearchError

_PARTS = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"\w")


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
        names = {
            "project": f"{project.rstrip('/')}/" if project else "",
            "session": session,
            "agent": agent,
        }
        values = {**names, "since": since, "until": until}
        return cls(" ".join(wanted), {k: v for k, v in values.items() if v})


def fts_query(asked: str) -> str:
    """All words must stand in a line; "so" stands for a phrase, wor* for words that begin so.

    Nothing else is syntax: what people look for is full of dots, dashes and brackets.
    """
    terms = [
        '"{}"{}'.format(text.replace('"', '""'), "*" if is_prefix else "")
        for text, is_prefix in _terms(asked)
    ]
    if not terms:
        raise SearchError("nothing to search for: give at least one word")
    return " AND ".join(terms)


def words_of(asked: str) -> list[str]:
    """Return the words and phrases that are asked for."""
    return [text for text, _ in _terms(asked)]


def _terms(asked: str) -> Iterator[tuple[str, bool]]:
    """Yield each word or phrase, and whether it is the beginning of a word."""
    for phrase, word in _PARTS.findall(asked):
        text = phrase or word
        if _WORD.search(text):
            is_prefix = not phrase and word.endswith("*")
            yield (text.rstrip("*") if is_prefix else text), is_prefix
