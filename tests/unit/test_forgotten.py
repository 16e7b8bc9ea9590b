"""Code that works on files knows forgotten sessions without opening the database each time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hivepipe.db.database import Database
from hivepipe.db.forget import remove_rows
from hivepipe.operations.forgotten_sessions import is_forgotten, update_marker


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "hive.db")
    yield db
    db.close()


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


def test_a_new_process_knows_forgotten_sessions(tmp_path: Path, db: Database) -> None:
    remove_rows(db, ["mine"])
    assert is_forgotten(str(tmp_path), "mine")
    assert not is_forgotten(str(tmp_path / "without a database"), "mine")
