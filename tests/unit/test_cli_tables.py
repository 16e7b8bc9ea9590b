"""How commands print times and texts of sessions, and how they read a day."""

import json
import time
import weakref
from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import click
import pytest
from rich.cells import cell_len
from rich.console import Console

from hivepipe.cli import cleanup, tables
from hivepipe.cli.hive import check
from hivepipe.cli.tables import (
    local_day,
    output_options,
    show_entries,
    show_table,
    shown_time,
    stored,
)
from hivepipe.cli.terminal import TEXTS_AT_ONCE, say_json_list
from hivepipe.cli.watch import screen
from hivepipe.jobs.agent_expiry import Verdict


@pytest.fixture(autouse=True)
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def given(*options: str) -> click.Context:
    """Return the context of a command that was called with these options."""
    command = output_options(click.Command("listing", callback=lambda: None))
    return command.make_context("listing", [*options])


def test_a_day_is_local_unless_utc_is_set() -> None:
    day = datetime(2026, 11, 21)  # noqa: DTZ001  as click reads it
    assert stored(day) == "2026-11-20T18:15:00.000Z"
    with given("--utc"):
        assert stored(day) == "2026-11-21T00:00:00.000Z"
    assert stored(None) == ""
    with pytest.raises(click.UsageError, match="0001-01-01 is out of range"):
        stored(datetime.min)  # noqa: DTZ901


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.000Z", "yesterday"])
def test_a_time_that_has_no_local_form_is_shown_as_it_is(text: str) -> None:
    assert shown_time(text) == text
    assert local_day(text) == text[:10]


@pytest.mark.parametrize("key", ["at", "made_at", "last_used"])
def test_a_stored_time_is_shown_as_local_time_under_any_name(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [{key: "2026-11-20T18:15:00.000Z"}]
    for options in ((), ("--utc",), ("--json",)):
        with given(*options):
            show_entries("reads", entries, {"time": key})
    _, local, _, utc_time, document = capsys.readouterr().out.splitlines()
    assert (local.strip(), utc_time.strip()) == ("2026-11-21 00:00:00", "2026-11-20 18:15:00Z")
    assert json.loads(document) == {"schema": 1, "reads": entries}


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_the_beginning_of_a_long_listing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 2)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    entries = [{"at": f"row{number}"} for number in range(3)]
    with given("--json"):
        show_entries("reads", entries, {"time": "at"})
    assert json.loads(capsys.readouterr().out)["reads"] == entries
    with given():
        show_entries("reads", entries, {"time": "at"})
    out, errors = capsys.readouterr()
    assert [entry["at"] in out for entry in entries] == [True, True, not is_terminal]
    assert (errors == "only 2 of 3 rows are shown: a pipe gets all\n") == is_terminal
    with given():
        show_entries("reads", entries, {"time": "at"}, is_newest_last=True)
    out, _ = capsys.readouterr()
    assert [entry["at"] in out for entry in entries] == [not is_terminal, True, True]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_long_listing_is_not_kept_as_entries(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    alive: list[weakref.ref[Any]] = []

    class Entry(dict[str, Any]):
        pass

    def entries() -> Iterator[Entry]:
        for number in range(5):
            assert sum(each() is not None for each in alive) <= 1
            entry = Entry(at=f"row{number}")
            alive.append(weakref.ref(entry))
            yield entry
            del entry

    with given(*options):
        show_entries("reads", entries(), {"time": "at"})
    assert "row4" in capsys.readouterr().out


def test_in_a_pipe_each_row_is_one_line_of_aligned_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = "/home" + "/a-long-name" * 25
    rows = [("/h", "漢字", "", ""), (path, "on\n", 5, "word " * 90), ("/k", "on", "5 s", "word")]
    show_table(("home", "state", "age", "text"), rows)
    assert capsys.readouterr().out.splitlines() == [
        f"{'home':<100}  state  age  text",
        f"{'/h':<100}  漢字",
        f"{path}  on\\n   5    {'word ' * 90}".rstrip(),
        f"{'/k':<100}  on     5 s  word",
    ]


def test_a_worker_with_a_wide_note_takes_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "_screen", lambda: (60, 24))
    worker: Any = SimpleNamespace(
        state="working", last_active_ns=0, note="漢字" * 40, worker=SimpleNamespace(id="w-1")
    )
    check._show_all([worker], shows_all=False)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "w-1" in line]
    assert 58 <= cell_len(line) <= 60


def watched(width: int, **session: str) -> str:
    """Return the screen of `status --watch` in a terminal of this width."""
    report: dict[str, Any] = {
        "condition": "degraded", "home": "/h", "state": "on", "spool": 0, "trouble": None,
        "reduced": [], "processes": [], "queues": None, "accounts": None,
        "alerts": [{"name": "store", "urgent": True, "text": "no [/such] file", "since": ""}],
    }  # fmt: skip
    fields = {
        "id": "s1", "condition": "active", "last_active_at": "", "calls": 1, "agents": 0,
        "objective": "answer in [/INST]", "project": "/p", **session,
    }  # fmt: skip
    console = Console(width=width)
    with console.capture() as shown, given("--utc"):
        console.print(screen(report, [fields], None))
    return shown.get()


def test_brackets_in_a_title_or_an_alert_are_no_markup() -> None:
    shown = watched(160)
    assert "no [/such] file" in shown
    assert "answer in [/INST]" in shown


def test_a_narrow_terminal_hides_no_column_of_a_session() -> None:
    shown = watched(40, id="01234567", last_active_at="2026-11-21T10:00:00.000Z")
    (line,) = [line for line in shown.splitlines() if "01234567" in line]
    assert all(cell.strip() for cell in line.strip("\u2502 ").split("\u2502")), line


ID = "11111111-aaaa-4bbb-8ccc-000000000001"
ROW = (ID, "ended", "2026-11-21 16:45:34", "claude-opus-4-5", "", "/home/me/a project")
COLUMNS = ("session", "status", "last", "model", "task", "about")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_breaks_no_time_and_no_id(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_table(COLUMNS, [ROW, ROW])
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= width
    assert len([line for line in lines if ID in line]) == 2
    assert len([line for line in lines if "2026-11-21 16:45:34" in line]) == 2
    assert len(lines) <= 12
    # The first column is counted with its full width, because it is never folded.
    row = (ID, "2026-11-21 16:45:34", "plain", "A session of two messages in a minute")
    show_table(("session", "made", "by", "summary"), [row])
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= width
    assert (lines[0] == ID) == (width < 200)


def test_an_empty_table_is_one_word_or_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(COLUMNS, [])
    show_table(COLUMNS, [], "no open sessions")
    assert capsys.readouterr().out == "none\nno open sessions\n"


def test_cleanup_shows_the_beginning_of_many_deleted_agents(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 2)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with given():
        cleanup._show([(f"agent{number}", Verdict(True, "expired")) for number in range(3)], True)
    out, errors = capsys.readouterr()
    assert [f"agent{number}" in out for number in range(3)] == [True, True, False]
    assert errors == "only 2 of 3 rows are shown: a pipe gets all\n"
    assert out.endswith("would delete 3, kept 0\n")


def test_a_long_list_is_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (0, 1, 2 * TEXTS_AT_ONCE + 1):
        say_json_list({"schema": 1}, "rows", [str(row) for row in range(number)])
        assert json.loads(capsys.readouterr().out) == {"schema": 1, "rows": [*range(number)]}
