"""Prose on a terminal is broken between words, but not in a path; in a pipe it is one line."""

import os
import shutil
from typing import Any

import pytest

from hivepipe.cli import failed, terminal
from hivepipe.cli.terminal import say_prose, short, unbroken

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
