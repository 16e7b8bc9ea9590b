"""Processes of a stack log JSON if it is set, and each line names its job."""

import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from hivepipe import redact
from hivepipe.db.database import Database
from hivepipe.jobs.process_log import JsonLines, TextLines, about_job
from hivepipe.redact.user_rules import parse, redactor
from tests.conftest import Home, Server, Writer, fire_all, until
from tests.payloads import POST_AGENT_COMPLETED, SESSION, SESSION_START, changed

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def lines(home: Home, process: str) -> list[dict[str, Any]]:
    log = home.root / f"{process}{home.path.name}.log"
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_every_line_is_an_object_and_names_its_job(
    private_home: Home, redis_server: Server, new_worker: Callable[[str], Writer]
) -> None:
    private_home.path.mkdir(exist_ok=True)
    (private_home.path / "config.toml").write_text('log_format = "json"\n')
    Database(private_home.database).close()
    writer = new_worker("writer")
    writer.start()
    new_worker("scheduler").start()
    fire_all([changed(SESSION_START, source="startup")], private_home.env)
    until(lambda: private_home.count("sessions"), "not stored")
    with closing(sqlite3.connect(private_home.database, timeout=10)) as db, db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("DELETE FROM swarms")
    fire_all([POST_AGENT_COMPLETED], private_home.env)
    until(lambda: any("failed job" in line["text"] for line in lines(private_home, "writer")),
          "no failed job")  # fmt: skip
    (dead,) = [line for line in lines(private_home, "writer") if "failed job" in line["text"]]
    assert (dead["level"], dead["process"]) == ("ERROR", "writer")
    assert (dead["operation"], dead["session"]) == ("insert_agent", SESSION)
    assert dead["job"] in dead["text"]
    assert dead["at"].endswith("Z")
    assert all(line["process"] == "scheduler" for line in lines(private_home, "scheduler"))


def test_a_line_without_a_job_names_none_and_a_traceback_is_one_line() -> None:
    formatter = JsonLines("writer")
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "", 1, "%s is %d", ("it", 3), info)
    about_job("j", "insert_log", "s")
    report = json.loads(formatter.format(record))
    assert (report["job"], report["text"]) == ("j", "it is 3")
    assert "ValueError: two\nlines" in report["traceback"]
    about_job()
    assert "\n" not in formatter.format(record)
    assert not {"job", "operation", "session"} & json.loads(formatter.format(record)).keys()


@pytest.fixture(autouse=True)
def reset_job() -> None:
    about_job()


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines("writer")])
def test_every_line_is_redacted(formatter: logging.Formatter) -> None:
    """The error of a handler may quote a text of a user."""
    try:
        raise KeyError(TOKEN)
    except KeyError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "", 1, "not %s", (TOKEN,), info)
    line = formatter.format(record)
    assert TOKEN not in line
    assert line.count("***REDACTED***") >= 2


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines("writer")])
def test_a_rule_of_the_user_leaves_the_time_and_the_job_of_a_line(
    formatter: logging.Formatter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`forget` finds the lines of a session by its id."""
    rule = "[[redaction.rules]]\nname = 'digits'\npattern = '[0-9]{4}'\nreplacement = 'DIGITS'\n"
    monkeypatch.setattr(redact, "_to_load", [])
    monkeypatch.setattr(redact, "_in_force", [redactor([parse(rule)])])
    record = logging.LogRecord("x", logging.ERROR, "", 1, "not 1234", (), None)
    about_job("1234abcd", "insert_log", "s-1234")
    line = formatter.format(record)
    assert "not DIGITS" in line
    assert line.count("DIGITS") == 1
    assert isinstance(formatter, TextLines) or json.loads(line)["session"] == "s-1234"
