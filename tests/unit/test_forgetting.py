"""A text to forget is found in every table and encoding, and files know forgotten sessions."""

import json
import multiprocessing
import os
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import click
import orjson
import pytest

from hivepipe.cli.forget import forget
from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.db.forget import (
    FORGOTTEN,
    TABLES,
    last_seen,
    remove_rows,
    remove_text,
    sessions_with_text,
)
from hivepipe.db.listings import listings
from hivepipe.jobs.forget_query import ForgetQuery
from hivepipe.operations.forgotten_sessions import is_forgotten, unfinished_sessions, update_marker

TEXT = 'say "naïve"\nor \\ not'


@pytest.mark.parametrize(
    "written",
    [
        TEXT.encode(),
        json.dumps({"a": TEXT}).encode(),
        orjson.dumps({"a": TEXT}),
        json.dumps({"a": json.dumps({"b": TEXT})}).encode(),
        orjson.dumps({"a": orjson.dumps({"b": TEXT}).decode()}),
        json.dumps({"a": orjson.dumps({"b": TEXT}).decode()}).encode(),
    ],
)
def test_every_encoding_is_found_and_can_be_replaced(written: bytes) -> None:
    query = ForgetQuery.text(TEXT)
    assert query.contains_text(b"before " + written)
    assert not query.contains_text(written.replace(b"say", b"sAy"))
    assert not query.contains_text(query.replaced(written.decode(), "*").encode())


def test_unreadable_data_is_found_by_a_session_id_too() -> None:
    query = ForgetQuery.text("secret").with_sessions({"one"})
    assert query.names(b"of one")
    assert query.names(b"a secret")
    assert not query.names(b"of two")


def test_a_text_that_is_not_utf8_is_found_as_typed() -> None:
    typed = os.fsdecode(b"caf\xe9")
    assert ForgetQuery.text(typed).contains_text(b"a caf\xe9")


KEPT = {"tasks"}  # tasks of the user are released, not removed


def test_every_table_with_a_session_or_agent_is_listed(db: Database) -> None:
    tables = [each["name"] for each in db.rows("SELECT name FROM sqlite_master WHERE type='table'")]
    columns = {
        table: {each["name"] for each in db.rows(f"SELECT name FROM pragma_table_info('{table}')")}
        for table in tables
    }
    assert last_seen(db) == {}, "every listed table has a time"
    words = ("session", "agent", "transcript")
    named = {it for it, names in columns.items() if any(w in name for name in names for w in words)}
    assert named - KEPT <= set(TABLES)
    assert all(column in columns[table] for table, (column, _) in TABLES.items())


def test_searching_for_a_text_does_not_load_all_rows(db: Database) -> None:
    query = ForgetQuery.text("quetzalcoatl")
    rows = [("one", f"{'word ' * 400}{number}") for number in range(3_000)]
    rows[1_500] = ("two", "a quetzalcoatl, a")
    db._connection.executemany(
        "INSERT INTO prompts (session_id, prompt, created_at) VALUES (?, ?, 'now')", rows
    )
    tracemalloc.start()
    try:
        assert sessions_with_text(db, query) == {"two"}
        assert remove_text(db, query) == 1
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000, "the rows have six times as much"
    row = db.row("SELECT prompt FROM prompts WHERE session_id = 'two'", {})
    assert row
    assert row["prompt"] == f"a {FORGOTTEN}, a"


def test_a_persons_own_table_may_have_any_name(tmp_path: Path, db: Database) -> None:
    db._connection.execute('CREATE TABLE "my ""notes""" ("a note" TEXT, [order] TEXT)')
    db._connection.execute("""INSERT INTO "my ""notes\"\"" VALUES ('quetzalcoatl', 'b')""")
    with listings(tmp_path / "hive.db") as store:
        assert store.counts()['my "notes"'] == 1
    assert remove_text(db, ForgetQuery.text("quetzalcoatl")) == 1
    (row,) = db.rows('SELECT * FROM "my ""notes"""')
    assert tuple(row) == (FORGOTTEN, "b")


def test_a_persons_own_column_may_be_named_like_the_number_of_a_row(db: Database) -> None:
    db._connection.execute("CREATE TABLE notes (rowid TEXT, row_number TEXT)")
    for note in ("quetzalcoatl", "b"):
        db._connection.execute("INSERT INTO notes VALUES ('a', ?)", (note,))
    assert remove_text(db, ForgetQuery.text("quetzalcoatl")) == 1
    assert [*map(tuple, db.rows("SELECT * FROM notes"))] == [("a", FORGOTTEN), ("a", "b")]


def test_the_database_is_read_again_when_the_marker_changes(tmp_path: Path, db: Database) -> None:
    home = str(tmp_path)
    assert not is_forgotten(home, "mine")
    remove_rows(db, ["mine"])
    update_marker(home)
    assert is_forgotten(home, "mine")
    assert is_forgotten(home, "other", "mine")
    assert not is_forgotten(home, "other")
    remove_rows(db, ["other"])
    update_marker(home)
    assert is_forgotten(home, "other")


def update_often(home: str, name: str) -> None:
    """Begin 40 sessions one after the other, and finish every second of them."""
    for number in range(40):
        update_marker(home, begun=[f"{name}{number}"])
        if number % 2:
            update_marker(home, finished=[f"{name}{number}"])


def test_the_marker_loses_no_change_of_two_commands_at_once(tmp_path: Path, db: Database) -> None:
    remove_rows(db, [f"{name}{number}" for name in "ab" for number in range(40)])
    forking = multiprocessing.get_context("fork")
    commands = [forking.Process(target=update_often, args=(str(tmp_path), name)) for name in "ab"]
    for each in commands:
        each.start()
    for each in commands:
        each.join(60)
    assert [each.exitcode for each in commands] == [0, 0]
    left = {f"{name}{number}" for name in "ab" for number in range(0, 40, 2)}
    assert unfinished_sessions(str(tmp_path)) == left


def test_a_new_process_knows_forgotten_sessions(tmp_path: Path, db: Database) -> None:
    remove_rows(db, ["mine"])
    assert is_forgotten(str(tmp_path), "mine")
    assert not is_forgotten(str(tmp_path / "without a database"), "mine")


def test_stdin_is_read_by_the_command_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the shell's completion nor wrong usage waits for a text."""
    monkeypatch.setattr(sys, "stdin", None)  # reading it fails
    words = ["--matching", "-"]
    parent = click.Context(main, **main.context_settings)
    called = partial(forget.make_context, "forget", parent=parent)
    assert called([*words], resilient_parsing=True).params["matching"] == "-"
    with pytest.raises(click.UsageError, match="one of SESSION"):
        called(["a-session", *words])
    with pytest.raises(click.UsageError, match="at least 4 characters"):
        called(["--matching", "abc"])
