"""Rows are marked as changed in pages, so that joining a team takes little memory and few locks."""

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.db import changes
from hivepipe.db.changes import CAPTURED, changes_since, collect, mark_all_changed, start_capture
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from tests.store_scene import new_database

AT = "2026-11-24T10:00:00.000Z"


def fill(path: Path, number: int) -> None:
    """Insert `number` messages and as many cost states, whose table has no rowid."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.executemany(
            "INSERT INTO usage VALUES (?, 'r', 'one', '', 0, 0, ?, '', '', '', 1, 1, 0, 0, 0, 0)",
            [(f"msg-{each}", AT) for each in range(number)],
        )
        db.executemany(
            "INSERT INTO cost_states (session_id, started_ms, duration_ms, model, created_at, "
            "input, output, cache_read, cache_write_5m, cache_write_1h, web_searches) "
            "VALUES ('one', ?, ?, 'm', ?, 0, 0, 0, 0, 0, 0)",
            [(each // 3, each % 3, AT) for each in range(number)],
        )
        db.execute("COMMIT")


def test_every_row_is_recorded_once_including_deleted_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "KEYS_AT_ONCE", 7)
    path = tmp_path / "hive.db"
    with closing(new_database(path)) as db, listings(path) as store:
        start_capture(db)
        fill(path, 50)
        with db.transaction():
            db.execute("DELETE FROM usage WHERE message_id LIKE 'msg-2%'", {})
        while collect(db):
            pass
        before = changes_since(store, 0, 1000)
        mark_all_changed(db)
        after = changes_since(store, before[-1].version, 1000)
        assert len(after) == 100
        assert {(each.table, each.key) for each in after} == {
            (each.table, each.key) for each in before
        }
        assert changes_since(store, 0, 1) == after[:1]  # nothing has kept an earlier version


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path) -> None:
    def peak(number: int) -> int:
        path = tmp_path / f"{number}.db"
        with closing(new_database(path)) as db:
            start_capture(db)
            fill(path, number)
            tracemalloc.start()
            mark_all_changed(db)
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return found

    assert peak(5_000) < 2 * peak(1_000)


def test_the_place_is_the_rowid_unless_a_table_has_none(db: Database) -> None:
    for each in CAPTURED:
        sql = "SELECT sql FROM sqlite_master WHERE name = :name"
        row = db.row(sql, {"name": each.table})
        assert row, each.table
        assert ("WITHOUT ROWID" in row["sql"]) is (each.place != "rowid")
