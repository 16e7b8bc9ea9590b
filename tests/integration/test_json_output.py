"""What --json prints is one object with its schema, for a listing and for an entry."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Home, Server, Writer, fire_all, is_drained, until
from tests.payloads import (
    AGENT,
    POST_AGENT_COMPLETED,
    POST_EDIT,
    SESSION,
    SESSION_START,
    USER_PROMPT_SUBMIT,
)

DAY = [SESSION_START, USER_PROMPT_SUBMIT, POST_EDIT, POST_AGENT_COMPLETED]


@pytest.fixture
def day(private_home: Home, redis_server: Server, writer: Writer) -> Home:
    fire_all(DAY, private_home.env)
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    return private_home


def said(home: Home, *words: str, expect: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(home.command(*words, "--json", expect=expect))
    assert found.pop("schema") == 1
    return found


def test_each_entry_and_listing_of_a_day(day: Home, tmp_path: Path) -> None:
    assert said(day, "agent", "show", AGENT)["type"] == "Explore"
    (line, *_) = said(day, "session", "log", SESSION)["log"]
    assert line["log_level"] == "INFO"
    shown = said(day, "session", "show", SESSION)
    assert {event["kind"] for event in shown["events"]} >= {"started", "prompt", "agent"}

    task = said(day, "task", "add", "Ship it", "--id", "ship", "--session", SESSION)
    assert task == {"id": "ship", "session": SESSION}
    assert said(day, "task", "show", "ship")["text"] == "Ship it"

    soul = tmp_path / "soul.md"
    soul.write_text("I am Ana. " * 20)
    day.command("profile", "add", "ana")
    day.command("profile", "put", "ana", "SOUL.md", str(soul))
    assert said(day, "profile", "show", "ana")["files"] == {"SOUL.md": soul.read_text()}
    (version,) = said(day, "profile", "history", "ana")["versions"]
    one = said(day, "profile", "show", "ana", "SOUL.md", "--version", str(version["id"]))
    assert one["files"] == {"SOUL.md": soul.read_text()}

    rule = said(day, "guard", "explain", "loop")
    assert (rule["rule"], rule["denies_from"]) == ("loop", 15)
    assert "same arguments" in rule["text"]
    assert said(day, "guard", "mode")["mode"] == "tasks"

    assert said(day, "archive", "sweep")["failed"] == {}
    assert said(day, "archive", "verify") == {"checked": 0, "archives": []}
    assert said(day, "archive", "follow", str(tmp_path))["folders"] == [str(tmp_path)]
    assert said(day, "drain") == {
        "applied": 0,
        "failed": [],
        "set_aside": [],
        "operations_failed": [],
        "sent": None,
    }


def test_a_summary_and_what_is_forgotten(day: Home, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("We made the timeout configurable.")
    made = said(day, "summaries", "run", SESSION, "--file", str(text))
    assert (made["session"], made["kind"]) == (SESSION, "plain")

    day.command("forget", SESSION, "--json", expect=64)
    would = said(day, "forget", SESSION, "--dry-run")
    assert would["dry_run"] is True
    assert would["sessions"] == [SESSION]
    assert {"place": "table prompts", "count": 1, "what": "row"} in would["gone"]
    assert day.count("prompts") == 1
    gone = said(day, "forget", SESSION, "--yes")
    assert gone["gone"]
    assert day.count("prompts") == 0
    assert said(day, "forget", "--before", "2001-01-01", "--dry-run")["gone"] == []


def test_a_damaged_archive_and_an_unreadable_event_are_in_it(private_home: Home) -> None:
    spool = private_home.path / "spool"
    spool.mkdir(parents=True)
    (spool / "12345678901234567890_1.json").write_text("{")
    found = said(private_home, "drain", expect=1)
    (bad,) = found["set_aside"]
    assert bad["reason"]


def test_lines_of_processes_are_an_object_each(private_home: Home) -> None:
    logs = private_home.path / "logs"
    logs.mkdir(parents=True)
    (logs / "writer.log").write_text("one\ntwo\n")
    lines = private_home.command("logs", "writer", "--json").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"schema": 1, "process": "writer", "line": text} for text in ("one", "two")
    ]
