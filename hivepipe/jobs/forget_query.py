"""A query for data to forget: session ids, and a text in each form that files may contain."""

import json
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class ForgetQuery:
    """Session ids, and the byte sequences that represent a text in files."""

    sessions: frozenset[str]
    spellings: tuple[bytes, ...] = ()

    @classmethod
    def text(cls, text: str) -> Self:
        """Return a query for a text that is plain, in JSON, or in JSON within a JSON string."""
        found = [text]
        for _ in range(2):
            found += [json.dumps(each)[1:-1] for each in found]
            found += [json.dumps(each, ensure_ascii=False)[1:-1] for each in found]
        # Bytes of an argument that are not UTF-8 are surrogates in Python.
        spelled = (each.encode("utf-8", "surrogateescape") for each in found)
        return cls(frozenset(), tuple(dict.fromkeys(spelled)))

    def with_sessions(self, sessions: set[str]) -> "ForgetQuery":
        return ForgetQuery(self.sessions | sessions, self.spellings)

    def contains_text(self, data: bytes) -> bool:
        return any(spelling in data for spelling in self.spellings)

    def names(self, data: bytes) -> bool:
        """Tell whether the bytes, of any format, contain a session id or the text."""
        return self.contains_text(data) or any(id.encode() in data for id in self.sessions)

    def replaced(self, value: str, by: str) -> str:
        data = value.encode("utf-8", "surrogatepass")
        for spelling in self.spellings:
            data = data.replace(spelling, by.encode())
        return data.decode("utf-8", "surrogatepass")
