"""Sentences: nouns and verbs agree with their number, and no path or id is broken."""

import os
import shutil
from typing import Any

import pytest

from hivepipe.cli import failed, terminal
from hivepipe.cli.terminal import say_prose, short, unbroken
from hivepipe.text.plurals import agreeing, counted, plural

PATH = "/mnt/the data of a whole year/of the shop/hive.db"


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda **_: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((40, 24)))


@pytest.mark.usefixtures("on_terminal")
def test_a_path_in_any_folder_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    say_prose(f"data     is in {short(PATH)} and in {unbroken('/a line to copy.db')} as well")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert [line.strip() for line in lines if PATH in line] == [PATH]
    assert sum("/a line to copy.db" in line for line in lines) == 1


@pytest.mark.usefixtures("on_terminal")
def test_the_steps_of_a_failed_job_follow_a_blank_line(capsys: pytest.CaptureFixture[str]) -> None:
    class Job:
        id, session, missing_parent = "job", "one", ("session", "one")

    job: Any = Job()
    for step in failed._steps(job, PATH):
        say_prose(step, 5)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["", "missing session: one"]
    assert sum(PATH in line for line in lines) == 1


def test_a_pipe_gets_the_line_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    say_prose(f"data     is in {short(PATH)} and in {unbroken(PATH)}; \0 and \x1b are escaped")
    say_prose("")
    text = rf"data     is in {PATH} and in {PATH}; \x00 and \x1b are escaped"
    assert capsys.readouterr().out == f"{text}\n\n"


@pytest.mark.parametrize(
    ("number", "thing", "verb", "expected"),
    [
        (0, "failed job", "", "0 failed jobs"),
        (1, "failed job", "", "1 failed job"),
        (2, "failed job", "", "2 failed jobs"),
        (1234, "event", "wait on disk", "1,234 events wait on disk"),
        (1, "event", "wait on disk", "1 event waits on disk"),
        (1, "worker", "are done", "1 worker is done"),
        (1, "log", "have", "1 log has"),
        (1, "file", "were left", "1 file was left"),
        (2, "entry", "", "2 entries"),
        (2, "day", "", "2 days"),
        (3, "Claude Code process", "", "3 Claude Code processes"),
        (2, "text of a rule", "", "2 texts of a rule"),
    ],
)
def test_noun_and_verb_agree_with_the_number(
    number: int, thing: str, verb: str, expected: str
) -> None:
    assert counted(number, thing, verb) == expected
    assert (plural("archived worker"), agreeing(1, "go on")) == ("archived workers", "goes on")
