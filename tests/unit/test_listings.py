"""Queries take a database without tables for missing, and use indexes for one session."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db import hive
from hivepipe.db.database import Database
from hivepipe.db.listings import _IDS, Listings, listings
from hivepipe.errors import NothingRecordedError
from hivepipe.jobs.about_session import COLUMNS
from hivepipe.operations.liveness import with_activity
from hivepipe.reading.time_line import time_line
from tests.store_scene import AT_NS, apply


@pytest.mark.parametrize("sql", ["", "PRAGMA application_id = 7", "PRAGMA journal_mode = WAL"])
def test_nothing_is_recorded_in_a_database_without_tables(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "hive.db"
    path.touch()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(sql)
    with pytest.raises(NothingRecordedError), listings(path) as store:
        store.rows("SELECT * FROM sessions", {})


@pytest.mark.parametrize("event", ["start", "activate", "pause", "end"])
def test_what_an_event_says_about_its_session_is_stored_and_shown(
    db: Database, tmp_path: Path, event: str
) -> None:
    apply(db, "start_session")
    apply(db, f"{event}_session", AT_NS + 1, **{field: f"a {field}" for field in COLUMNS.values()})
    with listings(tmp_path / "hive.db") as store:
        shown = store.session("s-1")
    assert shown
    assert {name: shown[name] for name in COLUMNS} == {
        name: f"a {field}" for name, field in COLUMNS.items()
    }


class ExplainingListings(Listings):
    """Listings that store SQLite's plan of every query."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.plans: list[str] = []

    def rows(self, sql: str, parameters: Any) -> list[dict[str, Any]]:
        self.explain(sql, parameters)
        return super().rows(sql, parameters)

    def each(self, sql: str, parameters: Any) -> Any:
        self.explain(sql, parameters)
        return super().each(sql, parameters)

    def explain(self, sql: str, parameters: Any) -> None:
        explained = self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        self.plans += [row["detail"] for row in explained]


@contextmanager
def explaining(folder: Path) -> Iterator[ExplainingListings]:
    Database(folder / "hive.db").close()
    with listings(folder / "hive.db") as plain:
        yield ExplainingListings(plain._connection)


def test_one_session_is_read_without_reading_others(tmp_path: Path) -> None:
    with explaining(tmp_path) as store:
        for kind in _IDS:
            with pytest.raises(Exception, match=f"no {kind}"):
                store.full_id(kind, "7b1f")
        store.session("7b1f")
        store.instances("7b1f")
        store.log("7b1f")
        store.agents("7b1f")
        with_activity(store, [{"id": "7b1f", "status": "active", "updated_at": ""}])
        time_line(str(tmp_path), store, "7b1f", 10)
        assert store.plans
        assert not scans(store.plans)
        store.plans = []
        store.agents(limit=10)
        # The filter by type reads the index, not the rows of other types.
        store.explain("SELECT 1 FROM agents WHERE type = '' ORDER BY created_at DESC, id", {})
    assert "SCAN agents USING INDEX agents_by_start" in store.plans
    assert "SCAN agents USING COVERING INDEX agents_by_start" in store.plans
    assert not [plan for plan in store.plans if "ORDER BY" in plan]


def test_the_stored_marks_of_a_worker_are_read_by_index(tmp_path: Path) -> None:
    with closing(ExplainingDatabase(tmp_path / "hive.db")) as db:
        db.execute("INSERT INTO hive_workers (id, hive) VALUES ('w-1', '.hive')", {})
        db.execute("INSERT INTO hive_runs VALUES ('w-1','',1,'','',7,'','','','',0,'',5)", {})
        assert hive.stored_marks(db, "w-1") == {("status", 0), ("state", None), (1, 7, "", 5)}
        assert hive.stored_marks(db, "w-2") == set()
        assert db.plans
        assert not scans(db.plans)


class ExplainingDatabase(Database):
    """A database that stores SQLite's plan of every query."""

    plans: tuple[str, ...] = ()

    def rows(self, sql: str, parameters: Any = None) -> list[Any]:
        explained = super().rows(f"EXPLAIN QUERY PLAN {sql}", parameters)
        self.plans += tuple(row["detail"] for row in explained)
        return super().rows(sql, parameters)

    def row(self, sql: str, parameters: Any) -> Any:
        return next(iter(self.rows(sql, parameters)), None)


def scans(plans: list[str]) -> list[str]:
    # `counted` holds the messages that a query has chosen (hivepipe.db.usage).
    return [plan for plan in plans if re.match(r"SCAN (?!CONSTANT|json_each|counted|\()", plan)]
