"""Classes that open a SQLite file close the connection if they cannot use the file."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hivepipe.agents.memory.index import MemoryIndex
from hivepipe.archive.search.index import SearchIndex
from hivepipe.db.database import Database
from hivepipe.db.legacy_database import LegacyDatabase
from hivepipe.errors import HivepipeError


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Return the list of the connections that are opened from now on."""
    connections = []
    connect = sqlite3.connect

    def recorded(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connections.append(connect(*arguments, **options))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    return connections


@pytest.mark.parametrize("kind", [Database, LegacyDatabase, MemoryIndex, SearchIndex])
def test_a_file_that_is_no_database_leaves_no_connection_open(
    kind: Callable[[Path], object], opened: list[sqlite3.Connection], tmp_path: Path
) -> None:
    path = tmp_path / "file.db"
    path.write_bytes(b"no database " * 100)
    with pytest.raises((HivepipeError, sqlite3.Error)):
        kind(path)
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_search_index_that_cannot_be_prepared_leaves_no_connection_open(
    opened: list[sqlite3.Connection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.archive.search.index._SCHEMA", "CREATE TABLE")
    with pytest.raises(HivepipeError):
        SearchIndex(tmp_path / "search.db")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
