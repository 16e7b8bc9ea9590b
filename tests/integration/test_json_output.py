"""--json prints one object with its schema, for a listing and for an entry."""

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


def printed(home: Home, *words: str, expect: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(home.command(*words, "--json", expect=expect))
    assert found.pop("schema") == 1
    return found


def test_each_entry_and_listing_is_one_object(day: Home, tmp_path: Path) -> None:
    assert printed(day, "agent", "show", AGENT)["type"] == "Explore"
    (line, *_) = printed(day, "session", "log", SESSION)["log"]
    assert line["log_level"] == "INFO"
    shown = printed(day, "session", "show", SESSION)
    assert {event["kind"] for event in shown["events"]} >= {"started", "prompt", "agent"}

    task = printed(day, "task", "add", "Ship it", "--id", "ship", "--session", SESSION)
    assert task == {"id": "ship", "session": SESSION}
    assert printed(day, "task", "show", "ship")["text"] == "Ship it"

    soul = tmp_path / "soul.md"
    soul.write_text("I am Ana. " * 20)
    day.command("profile", "add", "ana")
    day.command("profile", "put", "ana", "SOUL.md", str(soul))
    assert printed(day, "profile", "show", "ana")["files"] == {"SOUL.md": soul.read_text()}
    (version,) = printed(day, "profile", "history", "ana")["versions"]
    one = printed(day, "profile", "show", "ana", "SOUL.md", "--version", str(version["id"]))
    assert one["files"] == {"SOUL.md": soul.read_text()}

    rule = printed(day, "guard", "explain", "loop")
    assert (rule["rule"], rule["denies_from"]) == ("loop", 15)
    assert "same arguments" in rule["text"]
    assert printed(day, "guard", "mode")["mode"] == "tasks"

    assert printed(day, "archive", "sweep")["failed"] == {}
    assert printed(day, "archive", "verify") == {"checked": 0, "archives": []}
    assert printed(day, "archive", "follow", str(tmp_path))["folders"] == [str(tmp_path)]
    assert printed(day, "drain") == {
        "applied": 0,
        "failed": [],
        "set_aside": [],
        "operations_failed": [],
        "sent": None,
    }


def test_a_summary_and_a_forgotten_session_are_one_object(day: Home, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("We made the timeout configurable.")
    made = printed(day, "summaries", "run", SESSION, "--file", str(text))
    assert (made["session"], made["kind"]) == (SESSION, "plain")

    day.command("forget", SESSION, "--json", expect=64)
    would = printed(day, "forget", SESSION, "--dry-run")
    assert would["dry_run"] is True
    assert would["sessions"] == [SESSION]
    assert {"place": "table prompts", "count": 1, "what": "row"} in would["gone"]
    assert day.count("prompts") == 1
    gone = printed(day, "forget", SESSION, "--yes")
    assert gone["gone"]
    assert day.count("prompts") == 0
    assert printed(day, "forget", "--before", "2001-01-01", "--dry-run")["gone"] == []


def test_an_unreadable_event_is_reported_by_drain(private_home: Home) -> None:
    spool = private_home.path / "spool"
    spool.mkdir(parents=True)
    (spool / "12345678901234567890_1.json").write_text("{")
    found = printed(private_home, "drain", expect=1)
    (bad,) = found["set_aside"]
    assert bad["reason"]


def test_each_log_line_is_one_object(private_home: Home) -> None:
    logs = private_home.path / "logs"
    assert private_home.command("logs", "--json") == ""
    assert private_home.command("logs") == "no log lines\n"
    logs.mkdir(parents=True)
    (logs / "writer.log").write_text("one\ntwo\n")
    lines = private_home.command("logs", "writer", "--json").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"schema": 1, "process": "writer", "line": text} for text in ("one", "two")
    ]
