"""What is to be forgotten: sessions, by their ids, and whatever holds a text, however spelled."""

import json
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Wanted:
    """Sessions, and the bytes that a text has in files."""

    sessions: frozenset[str]
    spellings: tuple[bytes, ...] = ()

    @classmethod
    def text(cls, text: str) -> Self:
        """Look for a text: as it is, in JSON, and in JSON within a string of JSON."""
        found = [text]
        for _ in range(2):
            found += [json.dumps(each)[1:-1] for each in found]
            found += [json.dumps(each, ensure_ascii=False)[1:-1] for each in found]
        # What a terminal sends and is no UTF-8 stands in an argument as half a surrogate.
        spelled = (each.encode("utf-8", "surrogateescape") for each in found)
        return cls(frozenset(), tuple(dict.fromkeys(spelled)))

    def with_sessions(self, sessions: set[str]) -> "Wanted":
        """Look for these sessions as well."""
        return Wanted(self.sessions | sessions, self.spellings)

    def holds_text(self, data: bytes) -> bool:
        """Is the text in these bytes?"""
        return any(spelling in data for spelling in self.spellings)

    def names(self, data: bytes) -> bool:
        """Do these bytes name a session, or hold the text? For what cannot be read as ours."""
        return self.holds_text(data) or any(id.encode() in data for id in self.sessions)

    def replaced(self, value: str, by: str) -> str:
        """Return a value without the text."""
        data = value.encode("utf-8", "surrogatepass")
        for spelling in self.spellings:
            data = data.replace(spelling, by.encode())
        return data.decode("utf-8", "surrogatepass")
