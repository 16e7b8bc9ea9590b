"""The copy of a predecessor's database is of one moment, even while its worker writes."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.db import legacy_database
from hivepipe.db.legacy_database import LegacyDatabase


def test_a_log_of_an_earlier_attempt_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hive.db"
    worker = sqlite3.connect(path, isolation_level=None)
    worker.execute("PRAGMA journal_mode=WAL")
    worker.execute("CREATE TABLE swarms (id TEXT PRIMARY KEY, name TEXT)")
    worker.execute("INSERT INTO swarms VALUES ('s', 'early')")
    copy = legacy_database._copy

    def copied(source: str, target: Path) -> None:
        copy(source, target)
        if source.endswith("-wal"):  # the worker ends; SQLite applies its log and removes it
            worker.execute("UPDATE swarms SET name = 'late'")
            worker.close()

    monkeypatch.setattr(legacy_database, "_copy", copied)
    with closing(LegacyDatabase(path)) as legacy:
        assert [row["name"] for row in legacy.rows("swarms")] == ["late"]
