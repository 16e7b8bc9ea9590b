"""A database that a process is creating is read as one that does not exist yet."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.db.listings import listings
from hivepipe.errors import NothingRecordedError


@pytest.mark.parametrize("sql", ["", "PRAGMA application_id = 7", "PRAGMA journal_mode = WAL"])
def test_nothing_is_recorded_in_a_database_without_tables(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "hive.db"
    path.touch()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(sql)
    with pytest.raises(NothingRecordedError), listings(path) as store:
        store.rows("SELECT * FROM sessions", {})
