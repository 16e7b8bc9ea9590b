"""A server and machines of different versions: unknown columns are sent after the upgrade."""

import shutil
from pathlib import Path

import pytest

from hivepipe.db import changes
from hivepipe.team import batches, schema_steps
from hivepipe.team.connection import connected
from hivepipe.team.shared_rows import SHARED, Shared
from tests.team_scene import HomeOfTeam, Team, same_rows

NEXT_STEP = """
    ALTER TABLE hivepipe.usage ADD COLUMN mood text;
    CREATE TABLE hivepipe.notes (
      home int NOT NULL, key text NOT NULL, version bigint NOT NULL, session_id text, note text,
      made_at text, PRIMARY KEY (home, key));
    INSERT INTO hivepipe.shared_tables VALUES
      ('notes', false, true, 'session_id', 'made_at', 'prompts');
"""


def upgrade_server(team: Team, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `team init` of a hivepipe with one more step."""
    shutil.copytree(schema_steps._FOLDER, folder)
    (folder / "099_next.sql").write_text(NEXT_STEP)
    with monkeypatch.context() as patch, connected(team.admin) as connection:
        patch.setattr(schema_steps, "_FOLDER", folder)
        assert schema_steps.apply(connection) == ["099_next.sql"]


def upgrade_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add one column and one table to those that this hivepipe knows."""
    notes = changes.Captured("notes", ("{row}.id",))
    monkeypatch.setattr(changes, "CAPTURED", (*changes.CAPTURED, notes))
    monkeypatch.setitem(batches._CAPTURED, "notes", notes)
    usage = SHARED["usage"]
    monkeypatch.setitem(SHARED, "usage", usage._replace(texts=(*usage.texts, "mood")))
    monkeypatch.setitem(
        SHARED,
        "notes",
        Shared("t.id = wanted.p0", ("session_id", "made_at"), hidden=("note",), level="prompts"),
    )


def upgrade_home(home: HomeOfTeam) -> None:
    home.sql("ALTER TABLE usage ADD COLUMN mood TEXT DEFAULT 'calm'")
    home.sql("CREATE TABLE notes (id TEXT PRIMARY KEY, session_id TEXT, note TEXT, made_at TEXT)")
    home.sql("INSERT INTO notes VALUES ('n', 'one', 'remember', '2026-11-24')")


def test_an_older_machine_works_with_a_newer_server(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    ann = HomeOfTeam(tmp_path / "hive.db", team.joined("ann").writes)
    ann.work("one")
    ann.ship()
    upgrade_server(team, tmp_path / "schema", monkeypatch)
    ann.work("two")
    ann.sql("DELETE FROM prompts WHERE id = 1")
    ann.ship()
    assert same_rows(team, ann)
    newer = pytest.raises(schema_steps.TeamError, match="newer hivepipe")
    with connected(team.admin) as connection, newer:
        schema_steps.apply(connection)


def test_a_newer_machine_sends_the_rest_when_the_server_is_upgraded(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    older = HomeOfTeam(tmp_path / "older" / "hive.db", team.joined("bob").writes)
    older.work("of-bob")
    older.ship()
    ann = HomeOfTeam(tmp_path / "hive.db", team.joined("ann").writes)
    ann.work("one")
    ann.ship()
    with monkeypatch.context() as upgraded:
        upgrade_machines(upgraded)
        upgrade_home(ann)
        ann.ship()
        assert team.count("usage") == ann.count("usage") + older.count("usage")
        upgrade_server(team, tmp_path / "schema", monkeypatch)
        ann.ship()
        assert team.count("notes", "note = 'remember'") == 1
        assert team.count("usage", "mood = 'calm'") == ann.count("usage")
    older.work("later")
    older.ship()
    assert team.count("usage", "mood IS NULL") == older.count("usage")
    assert team.count("notes") == 1
