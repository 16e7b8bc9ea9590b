"""The list of what is forgotten is complete: a migration that adds a table is noticed here."""

from pathlib import Path

from hivepipe.store.database import Database
from hivepipe.store.forgetting import TABLES, TIMES, last_seen

KEPT = {"tasks"}  # the user's own: released, not removed


def test_every_table_with_a_session_or_agent_is_listed(tmp_path: Path) -> None:
    db = Database(tmp_path / "hive.db")
    try:
        tables = [
            row["name"] for row in db.rows("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        columns = {
            table: {
                row["name"] for row in db.rows(f"SELECT name FROM pragma_table_info('{table}')")
            }
            for table in tables
        }
    finally:
        db.close()
    named = {
        table
        for table, names in columns.items()
        if any("session" in name or "agent" in name or "transcript" in name for name in names)
    }
    assert named - KEPT <= set(TABLES)
    assert all(column in columns[table] for table, column in TABLES.items())


def test_every_one_of_them_says_when(tmp_path: Path) -> None:
    assert list(TIMES) == list(TABLES)
    db = Database(tmp_path / "hive.db")
    try:
        assert last_seen(db) == {}
    finally:
        db.close()
