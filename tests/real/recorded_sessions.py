"""Sessions as hivepipe recorded them, compared with the client's files and the fake API."""

import json
import re
import zlib
from collections import Counter
from typing import Any

from tests.conftest import until
from tests.real.messages_api import COMPACTION, USAGE
from tests.real.person import Person

# Kinds of tokens, as named by hivepipe, by the API and by the client.
TOKENS = (
    ("input", "input_tokens", "inputTokens"),
    ("output", "output_tokens", "outputTokens"),
    ("cache_read", "cache_read_input_tokens", "cacheReadInputTokens"),
    ("cache_write_5m", "cache_creation_input_tokens", "cacheCreationInputTokens"),
)
TITLE = "title"  # The script name of a request for a title. Only older clients send one.


def session(person: Person) -> dict[str, Any]:
    """Return the only session, or an empty dict before it is recorded."""
    return next(iter(sessions(person)), {})


def sessions(person: Person) -> list[dict[str, Any]]:
    """Return all sessions, newest first; empty before any is recorded."""
    said = person.hivepipe("sessions", "--all", "--json", expect=None)
    return list(json.loads(said)["sessions"]) if said else []


def events(person: Person, row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return kind and text of a session's events, without the model in the text of its start."""
    shown = person.json("session", "show", row["id"])
    return [(each["kind"], each["text"].partition(", claude-")[0]) for each in shown["events"]]


def compare_transcripts(person: Person) -> None:
    """Each transcript has an archive with the same checksum."""
    archives = person.json("archive", "list", "--agents")["archives"]
    wanted = {
        str(path): zlib.crc32(path.read_bytes())
        for each in person.json("sessions", "--all")["sessions"]
        for path in person.transcripts(each["id"])
    }
    sources = [each["meta"]["source"] for each in archives]
    assert {each["path"]: int(each["crc32"], 16) for each in sources} == wanted


def wait_for_condition(person: Person, condition: str) -> dict[str, Any]:
    """Wait until a session has a condition, and return the session."""

    def found() -> dict[str, Any] | None:
        return next((row for row in sessions(person) if row["condition"] == condition), None)

    return dict(until(found, f"no session is {condition}") or {})


def prompts(person: Person, row: dict[str, Any]) -> list[str]:
    return [text for kind, text in events(person, row) if kind == "prompt"]


def notes(person: Person, row: dict[str, Any]) -> list[str]:
    """Return the notes of a session, such as `Permission asked: Bash`."""
    return [text for kind, text in events(person, row) if kind == "note"]


def counts(row: dict[str, Any]) -> tuple[int, int]:
    """Return the number of calls of a session and of those that failed."""
    return row["calls"], row["failed"]


def compare_served(person: Person) -> None:
    """Messages and tokens of each model equal those that the fake API served, without titles."""
    served = Counter(
        re.sub(r"\[.*\]$", "", str(request.body["model"]))
        for request in person.api.requests
        if not request.is_refused and request.script not in (TITLE, COMPACTION)
    )
    rows = person.json("costs", "--by", "model")["costs"]
    assert {row["model"]: row["messages"] for row in rows if row["messages"]} == dict(served)
    for row in rows:
        if row["messages"] and COMPACTION not in [each.script for each in person.api.requests]:
            assert row["tokens"]["output"] == row["messages"] * int(str(USAGE["output_tokens"]))


def compare_found(person: Person, word: str, wanted: dict[str, int]) -> None:
    """Each session has the word in Claude's messages as often as wanted, no other has it."""
    hits = [hit for hit in person.json("search", word)["hits"] if hit["who"] == "claude"]
    assert Counter(hit["session_id"] for hit in hits) == Counter(wanted)
