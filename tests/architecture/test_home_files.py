"""`uninstall --purge` recognises every file of a home in the documentation."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.stack.home_files import why_not_ours
from tests.conftest import ROOT

# files of the user, which stay
PERSONS = {"config.toml", "prices.toml", "profiles/<id>/", "identity/before/"}
# examples of a placeholder or a folder
EXAMPLES = {
    "spool/<event time>_<pid>.json": "spool/01234567890123456789_42.json",
    "spool/bad/": "spool/bad/01234567890123456789_42.json.reason",
    "call-notes.<time>": "call-notes.1234567", "instances/<key>": "instances/42",
    "instances/<key>.checkpoint": "instances/42.checkpoint",
    "sessions/.session_<pid>": "sessions/.session_42",
    "tasks/cancelled/<task>": "tasks/cancelled/T-88",
    "tasks/sessions/<session>": "tasks/sessions/abc",
    "spool/<event time>_<pid>.raw": "spool/01760000000000000000_42.raw",
    "appendonlydir/": "appendonlydir/appendonly.aof.1.incr.aof",
    "appendonlydir.<time>/": "appendonlydir.1234567890123456789/appendonly.aof.manifest",
    "tasks/told/": "tasks/told/0123456789abcdef", "backups/": "backups/hive-before-0050-42.db",
    "recall/": "recall/told-0123456789abcdef",
    "context/": "context/project-0123456789abcdef.txt",
    "identity/": "identity/01234567890123456789_42_CLAUDE.md", "logs/": "logs/writer.log.1",
    "-wal": "search.db-wal", "-shm": "search.db-shm",
}  # fmt: skip


def documented() -> list[str]:
    text = (ROOT / "docs/architecture.md").read_text()
    table = text.split("\n## Files\n", 1)[1].split("\nArchives and exports are", 1)[0]
    items = re.findall(r"^- (`.+?`):\s", table, re.MULTILINE | re.DOTALL)
    return [name for item in items for name in re.findall(r"`([^`]+)`", item)]


@pytest.mark.parametrize("name", sorted({*documented()} - PERSONS))
def test_a_documented_file_is_hivepipes(tmp_path: Path, name: str) -> None:
    path = tmp_path / EXAMPLES.get(name, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    said = why_not_ours(str(tmp_path), str(path.relative_to(tmp_path)))
    assert said in ("", "it is not hivepipe's database")


def test_what_a_killed_backup_left_is_hivepipes(tmp_path: Path) -> None:
    path = tmp_path / ".backup-k1_lled0" / "hive.db"
    path.parent.mkdir()
    path.touch()
    assert why_not_ours(str(tmp_path), ".backup-k1_lled0/hive.db") == ""


@pytest.mark.parametrize("name", ["notes.txt", "hive.db.mine", "spool/mine.json", "logs/a.log"])
def test_any_other_file_is_the_users(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert why_not_ours(str(tmp_path), name)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("", ""),
        ("CREATE TABLE schema_migrations (id)", ""),
        ("CREATE TABLE notes (text)", "it is not hivepipe's database"),
    ],
)
def test_an_empty_database_may_be_removed(tmp_path: Path, sql: str, reason: str) -> None:
    with closing(sqlite3.connect(tmp_path / "hive.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(sql or "PRAGMA user_version")
        assert why_not_ours(str(tmp_path), "hive.db") == reason
